import type { IncomingHttpHeaders } from 'node:http';

interface HasHeaders {
  readonly headers: Readonly<IncomingHttpHeaders>;
}

/** How an Accept header rates a media type. */
interface Wanted {
  /** From 0 (not acceptable) to 1. */
  readonly weight: number;
  /** 2 if the type is named, 1 if it matches `application/*`, 0 if it matches `*\/*` or nothing. */
  readonly specificity: 0 | 1 | 2;
}

const UNWANTED: Wanted = { weight: 0, specificity: 0 };

/**
 * Parses an Accept header. The returned function rates a media type by the most specific range that matches
 * it (RFC 9110 12.5.1); of equal ranges, the one with the highest weight counts. Ranges for which `usable`
 * returns false are ignored.
 */
export function parseAccept(
  header: string,
  usable: (range: Weighted) => boolean = () => true,
): (mediaType: string) => Wanted {
  const weights = new Map<string, number>();
  for (const range of parseWeightedList(header)) {
    if (usable(range)) weights.set(range.name, Math.max(range.weight, weights.get(range.name) ?? 0));
  }
  return (mediaType) => {
    const named = weights.get(mediaType);
    if (named !== undefined) return { weight: named, specificity: 2 };
    const family = weights.get(mediaType.replace(/\/.*/, '/*'));
    if (family !== undefined) return { weight: family, specificity: 1 };
    const any = weights.get('*/*');
    return any === undefined ? UNWANTED : { weight: any, specificity: 0 };
  };
}

/**
 * The type that an Accept header prefers: the highest weight, then a type that is named rather than matched
 * by a wildcard, then the first in `types`. Undefined if none is acceptable.
 */
export function preferred<T extends string>(
  accept: string | undefined,
  types: readonly T[],
  usable?: (range: Weighted) => boolean,
): T | undefined {
  if (accept === undefined || accept === '*/*') return types[0];
  const wanted = parseAccept(accept, usable);
  let best: T | undefined;
  let bestRank = 0;
  for (const type of types) {
    const { weight, specificity } = wanted(type);
    // A weight has at most three decimals, so specificity only breaks ties.
    const rank = weight === 0 ? 0 : weight * 10_000 + specificity;
    if (rank > bestRank) {
      best = type;
      bestRank = rank;
    }
  }
  return best;
}

/**
 * Whether an Accept header asks for an HTML page: it weighs text/html above each of `others`, as browsers do.
 * False if the header is absent or `*\/*`.
 */
export function prefersHtml(accept: string | undefined, others: readonly string[]): boolean {
  if (accept === undefined || accept === '*/*') return false;
  const wanted = parseAccept(accept);
  const html = wanted('text/html').weight;
  return others.every((other) => html > wanted(other).weight);
}

/** Whether an Accept header names event streams, with any weight. */
export function takesEventStream(accept: string | undefined): accept is string {
  return accept !== undefined && accept !== '*/*' && /text\/event-stream/i.test(accept);
}

/** Whether an Accept header prefers an event stream to the other type. */
export function prefersEventStream(accept: string | undefined, other: string): boolean {
  if (!takesEventStream(accept)) return false;
  const wanted = parseAccept(accept);
  const stream = wanted('text/event-stream');
  const rival = wanted(other);
  if (stream.weight !== rival.weight) return stream.weight > rival.weight;
  return stream.weight > 0 && stream.specificity > rival.specificity;
}

/** A member of an Accept or Accept-Encoding header: its name in lower case and its weight from 0 to 1. */
export interface Weighted {
  readonly name: string;
  readonly weight: number;
  /** Parameters as written, including the weight; read them with `parameterOf`. */
  readonly parameters: readonly string[];
}

const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Splits a header like `text/html, *\/*;q=0.8` into its members, in order. Members without a name or with an
 * invalid weight are ignored.
 */
export function parseWeightedList(header: string): readonly Weighted[] {
  const members: Weighted[] = [];
  for (const member of splitList(header, ',')) {
    const [first = '', ...parameters] = splitList(member, ';');
    const name = first.trim().toLowerCase();
    if (name === '' || name.includes('"')) continue;
    const weight = written(parameters, 'q') ?? '1';
    if (weightPattern.test(weight)) members.push({ name, weight: Number(weight), parameters });
  }
  return members;
}

/** The first parameter with a name in lower case, unquoted; undefined if absent. */
export function parameterOf({ parameters }: Weighted, name: string): string | undefined {
  const value = written(parameters, name);
  if (value?.startsWith('"') !== true) return value;
  return value.slice(1, value.endsWith('"') ? -1 : undefined).replace(/\\(.)/g, '$1');
}

function written(parameters: readonly string[], name: string): string | undefined {
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=');
    const key = equals === -1 ? parameter : parameter.slice(0, equals);
    if (key.trim().toLowerCase() === name) return equals === -1 ? '' : parameter.slice(equals + 1).trim();
  }
  return undefined;
}

/** Splits at separators outside quoted strings (RFC 9110 5.6.4). */
function splitList(text: string, separator: ',' | ';'): readonly string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') quoted = !quoted;
    else if (quoted) {
      if (c === '\\') i++;
    } else if (c === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** The preferences of a request (RFC 7240), by name in lower case; the first of equal names counts. */
export function preferences({ headers }: HasHeaders): ReadonlyMap<string, string> {
  const { prefer } = headers;
  const found = new Map<string, string>();
  // Node joins repeated Prefer headers.
  for (const member of splitList(typeof prefer === 'string' ? prefer : '', ',')) {
    const [first = ''] = splitList(member, ';');
    const equals = first.indexOf('=');
    const key = (equals === -1 ? first : first.slice(0, equals)).trim().toLowerCase();
    const value = equals === -1 ? '' : unquoted(first.slice(equals + 1).trim());
    if (key !== '' && !found.has(key)) found.set(key, value.toLowerCase());
  }
  return found;
}

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word;
}

/**
 * Whether a client asks for HTTP's own status where the contract deviates from it: `Prefer: handling=strict`.
 */
export function handlesStrictly({ headers }: HasHeaders): boolean {
  return headers.prefer !== undefined && preferences({ headers }).get('handling') === 'strict';
}

/** The headers of a reply that has HTTP's own status because the client asked for it. */
export const STRICT_APPLIED = { 'preference-applied': 'handling=strict', vary: 'prefer' } as const;
