import type { Logger } from 'pino';
import type { Door } from '../config/options/door.ts';

/** What a stop waits for: numbers of requests by door, and of running jobs by target. */
export interface Unfinished {
  readonly requests: ReadonlyMap<Door, number>;
  readonly jobs: ReadonlyMap<string, number>;
}

/** What everybody waits at most before they are told, and between two words about it, in milliseconds. */
const REPORT = 500;

/** `2 requests: rest; 1 handler: slow`; empty when nothing is left. */
export function describeUnfinished({ requests, jobs }: Unfinished): string {
  const kinds = new Map([['request', new Map<string, number>(requests)]]);
  for (const [target, count] of jobs) {
    // `handler:<event>` or `forward:<name>`.
    const [kind = '', name] = split(target);
    const named = kinds.get(kind) ?? new Map<string, number>();
    kinds.set(kind, named.set(name, count));
  }
  return [...kinds].flatMap(([kind, counts]) => describeCounts(kind, counts)).join('; ');
}

function describeCounts(kind: string, counts: ReadonlyMap<string, number>): readonly string[] {
  const present = [...counts].filter(([, count]) => count > 0);
  const total = present.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return [];
  return [`${total} ${kind}${total === 1 ? '' : 's'}: ${present.map(([name]) => name).join(', ')}`];
}

function split(target: string): readonly [string, string] {
  const colon = target.indexOf(':');
  return [target.slice(0, colon), target.slice(colon + 1)];
}

/** Logs what a stop waits for, until it is disposed of: soon, and again when that changes. `hint` says what can be done. */
export function reportUnfinished(log: Logger, unfinished: () => Unfinished, hint: string): Disposable {
  let last = '';
  const report = setInterval(() => {
    const text = describeUnfinished(unfinished());
    if (text !== '' && text !== last) log.info(`waiting for ${text}${hint}`);
    last = text;
  }, REPORT).unref();
  return { [Symbol.dispose]: () => clearInterval(report) };
}
