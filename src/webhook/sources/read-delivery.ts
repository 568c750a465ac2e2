import { type JsonPointer, valueAt } from '../../core/json-pointer.ts';
import type { RequestHeaders } from '../schemes/scheme.ts';
import { type SourceLayout, type SourceSettings, valueAtPlace } from './source.ts';

/** The content of a verified request. */
export interface ReadDelivery {
  readonly kind: 'delivery';
  /** By the name that it gets here; null when the request names none. */
  readonly event: string | null;
  /** The sender's own name where the source renames the event; null otherwise. */
  readonly senderEvent: string | null;
  /** The place of its data in the body. */
  readonly pointer: JsonPointer;
  /** The deduplication key: equal for requests that deliver the same event; null without one. */
  readonly dedupKey: string | null;
}

/** Slack's URL verification; `answer` is the body of the 200 that it expects. */
export interface Challenge {
  readonly kind: 'challenge';
  readonly answer: string;
}

/** Reads a verified request; `body` is its parsed body. */
export function readDelivery(
  source: SourceLayout & Pick<SourceSettings, 'scheme'>,
  headers: RequestHeaders,
  body: unknown,
): ReadDelivery | Challenge {
  if (source.scheme === 'slack' && valueAt(body, ['type']) === 'url_verification') {
    const answer = valueAt(body, ['challenge']);
    if (typeof answer === 'string') return { kind: 'challenge', answer };
  }
  const dedupKey = dedupKeyOf(source, headers, body);
  const names = namesOf(source, valueAtPlace(source.event, headers, body));
  const other = names.event === null && source.scheme === 'slack' ? slackEvent(body) : undefined;
  if (other !== undefined) return { kind: 'delivery', ...namesOf(source, other), pointer: [], dedupKey };
  return { kind: 'delivery', ...names, pointer: source.data, dedupKey };
}

/** Slack also sends interactions, which have a type, and commands: the whole body is their data. */
function slackEvent(body: unknown): unknown {
  return valueAt(body, ['command']) ?? valueAt(body, ['type']);
}

function namesOf({ events }: SourceLayout, name: unknown): Pick<ReadDelivery, 'event' | 'senderEvent'> {
  if (typeof name !== 'string' || name === '') return { event: null, senderEvent: null };
  const event = events.get(name) ?? name;
  return { event, senderEvent: event === name ? null : name };
}

function dedupKeyOf({ dedup }: SourceLayout, headers: RequestHeaders, body: unknown): string | null {
  if (dedup === undefined) return null;
  const value = valueAtPlace(dedup, headers, body);
  const key = typeof value === 'number' ? String(value) : value;
  return typeof key === 'string' && key !== '' ? key : null;
}
