import { headerOf, type RequestHeaders } from './scheme.ts';

/** The signed text before and after the body, in Latin-1. */
export interface Frame {
  readonly before: string;
  readonly after: string;
}

/** Fills in a template; undefined when one of its headers is missing. */
export type Template = (timestamp: string, headers: RequestHeaders) => Frame | undefined;

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
  const [before, after, ...more] = text.split('{body}').map(readParts);
  if (before === undefined || after === undefined || more.length > 0) return undefined;
  return {
    fill(timestamp, headers) {
      const filledBefore = before(timestamp, headers);
      const filledAfter = after(timestamp, headers);
      if (filledBefore === undefined || filledAfter === undefined) return undefined;
      return { before: filledBefore, after: filledAfter };
    },
    usesTimestamp: text.includes('{timestamp}'),
  };
}

/** Gives the text of a part; undefined when its header is missing. */
type Part = (timestamp: string, headers: RequestHeaders) => string | undefined;

/** Parses a text without {body}. */
function readParts(text: string): Part | undefined {
  const parts: Part[] = [];
  // With a capturing group, split returns texts and placeholders alternately.
  for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
    const name = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(piece)?.[1]?.toLowerCase();
    if (index % 2 === 0) {
      if (!/^[^{}\x80-\uffff]*$/.test(piece)) return undefined;
      parts.push(() => piece);
    } else if (piece === 'timestamp') parts.push((timestamp) => timestamp);
    else if (name !== undefined) parts.push((_timestamp, headers) => headerOf(headers, name));
    else return undefined;
  }
  return (timestamp, headers) => {
    let filled = '';
    for (const part of parts) {
      const value = part(timestamp, headers);
      if (value === undefined) return undefined;
      filled += value;
    }
    return filled;
  };
}
