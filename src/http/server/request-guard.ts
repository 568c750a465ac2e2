import type { IncomingMessage } from 'node:http';
import { LIMITS } from '../limits.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/**
 * Fields of one value by which a request is judged. Node takes the first of two or joins them, a proxy in front may take
 * the last: whoever sends two could have each program read another one (RFC 9110 5.3). Fields that are lists are not
 * here, nor those in which two values joined are one that nobody accepts. Each has a bit of its own.
 */
const ONCE: ReadonlyMap<string, number> = new Map(
  [
    'host',
    'authorization',
    'content-type',
    'if-modified-since',
    'if-unmodified-since',
    'last-event-id',
    'origin',
    'sec-fetch-site',
  ].map((name, i) => [name, 1 << i]),
);

/**
 * What Node's parser lets through and two programs in a row could read differently (RFC 9112 3.2 and 6.1), and
 * expectations that nobody can meet (RFC 9110 10.1.1). Returns why the request is refused, or undefined.
 */
export function refusedFraming(request: IncomingMessage): HttpProblem | undefined {
  const raw = request.rawHeaders;
  // Node drops what comes past its limit without a word, a token or a length among it.
  if (raw.length >= 2 * LIMITS.maxHeaders) {
    return new HttpProblem(431, 'TOO_MANY_HEADERS', `More than ${LIMITS.maxHeaders - 1} header fields`);
  }
  let seen = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]?.toLowerCase() ?? '';
    const bit = ONCE.get(name) ?? 0;
    if ((seen & bit) !== 0) return duplicate(name);
    seen |= bit;
  }
  if (request.headers.host === undefined && request.httpVersionMinor > 0) {
    return new HttpProblem(400, 'MISSING_HOST', 'The Host header is missing');
  }
  if (request.httpVersionMinor === 0 && request.headers['transfer-encoding'] !== undefined) {
    return new HttpProblem(400, 'TRANSFER_ENCODING_1_0', 'HTTP/1.0 has no Transfer-Encoding');
  }
  const { expect } = request.headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return new HttpProblem(417, 'UNKNOWN_EXPECTATION', reasonPhrase(417));
  }
  return undefined;
}

function duplicate(name: string): HttpProblem {
  if (name === 'host') return new HttpProblem(400, 'DUPLICATE_HOST', 'More than one Host header');
  return new HttpProblem(400, 'DUPLICATE_FIELD', `More than one header field ${name}; send one`);
}

/** The origin form of a request target; a server must accept the absolute form too (RFC 9112 3.2.2). */
export function originForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  // The authority ends at the first "/" or "?" (RFC 3986 3.2).
  const authority = /^https?:\/\/[^/?]*/i.exec(target)?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
