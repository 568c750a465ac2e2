import { parsePointer, valueAt } from '../../core/json-pointer.ts';
import type { ReceivedDelivery } from '../../inbox/rules/received-delivery.ts';

/** The text of a header for a delivery; undefined when the delivery lacks a value for it. */
export type HeaderTemplate = (delivery: ReceivedDelivery) => string | undefined;

/** Parses a text with `{id}`, `{event}`, `{senderEvent}`, `{source}` and `{/pointer}` into the body; undefined when it is invalid. */
export function headerTemplate(text: string): HeaderTemplate | undefined {
  const parts: HeaderTemplate[] = [];
  // With a capturing group, split returns texts and placeholders alternately.
  for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
    const part = index % 2 === 0 ? plainPart(piece) : placeholder(piece);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return (delivery) => {
    let filled = '';
    for (const part of parts) {
      const value = part(delivery);
      if (value === undefined) return undefined;
      filled += value;
    }
    return filled;
  };
}

function plainPart(text: string): HeaderTemplate | undefined {
  return /^[^{}]*$/.test(text) ? () => text : undefined;
}

function placeholder(name: string): HeaderTemplate | undefined {
  if (name === 'id' || name === 'event' || name === 'senderEvent' || name === 'source')
    return (delivery) => delivery[name] ?? undefined;
  const pointer = parsePointer(name);
  if (pointer === undefined || name === '') return undefined;
  return ({ body }) => {
    const value = valueAt(body, pointer);
    if (value === undefined || value === null) return undefined;
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
}
