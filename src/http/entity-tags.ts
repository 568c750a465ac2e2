import type { IncomingHttpHeaders } from 'node:http';

/** Validators of a reply: the entity tag, and the time of the last change in milliseconds since 1970. */
export interface Validators {
  readonly etag: string;
  readonly changed: number;
}

const TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** Reads If-Match or If-None-Match (RFC 9110 13.1): `*`, or a list of tags; invalid tags are dropped. */
export function readEntityTags(header: string): '*' | readonly string[] {
  if (header.trim() === '*') return '*';
  const tags = header.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.filter((tag) => TAG.test(tag));
}

/**
 * Whether a read may be answered with 304: by If-None-Match if present, else by If-Modified-Since (RFC 9110
 * 13.2.2).
 */
export function isNotModified(headers: IncomingHttpHeaders, { etag, changed }: Validators): boolean {
  const { 'if-none-match': noneMatch, 'if-modified-since': since } = headers;
  if (noneMatch !== undefined) {
    const tags = readEntityTags(noneMatch);
    return tags === '*' || tags.some((tag) => opaque(tag) === opaque(etag));
  }
  if (since === undefined || changed === 0) return false;
  const moment = Date.parse(since);
  return !Number.isNaN(moment) && Math.floor(changed / 1_000) * 1_000 <= moment;
}

/** A tag without its weakness prefix. */
function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}

/**
 * Texts of Last-Modified by second; most users that are read together were changed in a few distinct seconds.
 */
const texts = new Map<number, string>();
const MAX_TEXTS = 1_000;

/**
 * The text of Last-Modified. Undefined for an unknown time, and within the second of the change: a second
 * change in the same second would be invisible to If-Modified-Since.
 */
export function lastModified(changed: number, now = Date.now()): string | undefined {
  const second = Math.floor(changed / 1_000);
  if (second === 0 || second >= Math.floor(now / 1_000)) return undefined;
  const known = texts.get(second);
  if (known !== undefined) return known;
  if (texts.size === MAX_TEXTS) texts.clear();
  const text = new Date(second * 1_000).toUTCString();
  texts.set(second, text);
  return text;
}
