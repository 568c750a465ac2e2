import { headerOf, type RequestHeaders } from './scheme.ts';

/** The signed text before and after the body, in Latin-1. */
export interface Frame {
  readonly before: string;
  readonly after: string;
}

/** Fills in a template; undefined when one of its headers is missing. */
export type Template = (timestamp: string, headers: RequestHeaders) => Frame | undefined;

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'timestamp' }
  | { readonly kind: 'header'; readonly name: string };

/** A parsed template. */
export interface ReadTemplate {
  readonly fill: Template;
  readonly usesTimestamp: boolean;
}

/** `{body}` */
export const bodyAlone: ReadTemplate = { fill: () => ({ before: '', after: '' }), usesTimestamp: false };

/** `{timestamp}.{body}` */
export const timestampAndBody: ReadTemplate = {
  fill: (timestamp) => ({ before: `${timestamp}.`, after: '' }),
  usesTimestamp: true,
};

/** Parses a template: ASCII text with one {body} and any number of {timestamp} and {header:NAME}; undefined when invalid. */
export function readTemplate(text: string): ReadTemplate | undefined {
  const halves = text.split('{body}');
  const [before, after] = halves.map(readParts);
  if (halves.length !== 2 || before === undefined || after === undefined) return undefined;
  return {
    fill(timestamp, headers) {
      const filledBefore = fill(before, timestamp, headers);
      const filledAfter = fill(after, timestamp, headers);
      if (filledBefore === undefined || filledAfter === undefined) return undefined;
      return { before: filledBefore, after: filledAfter };
    },
    usesTimestamp: [...before, ...after].some((part) => part.kind === 'timestamp'),
  };
}

function readParts(text: string): readonly Part[] | undefined {
  const parts: Part[] = [];
  // With a capturing group, split returns texts and placeholders alternately.
  for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
    const name = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(piece)?.[1];
    if (index % 2 === 0) {
      if (!/^[^{}\x80-\uffff]*$/.test(piece)) return undefined;
      if (piece !== '') parts.push({ kind: 'text', text: piece });
    } else if (piece === 'timestamp') parts.push({ kind: 'timestamp' });
    else if (name !== undefined) parts.push({ kind: 'header', name: name.toLowerCase() });
    else return undefined;
  }
  return parts;
}

function fill(parts: readonly Part[], timestamp: string, headers: RequestHeaders): string | undefined {
  let filled = '';
  for (const part of parts) {
    if (part.kind === 'text') filled += part.text;
    else if (part.kind === 'timestamp') filled += timestamp;
    else {
      const value = headerOf(headers, part.name);
      if (value === undefined) return undefined;
      filled += value;
    }
  }
  return filled;
}
