import type { RequestContext } from '../endpoint.ts';

/** Pairs of names and values that every reader of queries understands alike; Fastify reads all others. */
const PLAIN = /^[\w.:,~*%+-]+=[\w.:,~*%+!'()$@{}[\]"-]*(?:&[\w.:,~*%+-]+=[\w.:,~*%+!'()$@{}[\]"-]*)*$/;

/** Whether the fast path reads a query like Fastify. */
export function isPlainQuery(query: string): boolean {
  if (!PLAIN.test(query)) return false;
  if (!query.includes('%')) return true;
  try {
    decodeURIComponent(query);
    return true;
  } catch {
    return false;
  }
}

/** The path of a target. */
export function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/** The last segment of the path of a target. */
export function lastSegment(target: string): string {
  const path = pathOf(target);
  return path.slice(path.lastIndexOf('/') + 1);
}

const NO_QUERY: RequestContext['query'] = Object.freeze({});

/** The decoded parameters of a target whose query is plain. */
export function readPlainQuery(target: string): RequestContext['query'] {
  const start = target.indexOf('?') + 1;
  if (start === 0) return NO_QUERY;
  const query: Record<string, string | string[]> = Object.create(null);
  for (const pair of target.slice(start).split('&')) {
    const end = pair.indexOf('=');
    const name = decoded(pair.slice(0, end));
    const value = decoded(pair.slice(end + 1));
    const known = query[name];
    if (known === undefined) query[name] = value;
    else if (typeof known === 'string') query[name] = [known, value];
    else known.push(value);
  }
  return query;
}

function decoded(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  return spaced.includes('%') ? decodeURIComponent(spaced) : spaced;
}
