import { parsePointer } from '../../core/json-pointer.ts';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import type { DeliveryHandler, HandlerSpec } from '../../inbox/handler.ts';

const NUMBERS = ['concurrency', 'timeout', 'attempts'] as const;
const KEYS = ['handler', ...NUMBERS, 'order'];

/** Reads `webhook.handlers`: by event a function, or an object with a function and its limits. */
export function readHandlers(
  value: unknown,
  path: string,
  problems: string[],
): ReadonlyMap<string, HandlerSpec> {
  const read = new Map<string, HandlerSpec>();
  if (value === undefined) return read;
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of functions`);
    return read;
  }
  for (const [event, entry] of entriesOf(value)) {
    const at = /^[\w-]+$/.test(event) ? `${path}.${event}` : `${path}[${quote(event)}]`;
    if (isHandler(entry)) read.set(event, { handler: entry });
    else if (isRecord(entry)) readSpec(entry, at, problems, (spec) => read.set(event, spec));
    else problems.push(`${at} must be a function, or an object with a function as its "handler"`);
  }
  return read;
}

function readSpec(
  entry: Readonly<Record<string, unknown>>,
  at: string,
  problems: string[],
  use: (spec: HandlerSpec) => void,
): void {
  const given = new Map(entriesOf(entry));
  for (const key of given.keys()) if (!KEYS.includes(key)) problems.push(unknownKey(at, key, KEYS));
  const before = problems.length;
  const handler = given.get('handler');
  if (!isHandler(handler)) problems.push(`${at}.handler must be a function`);
  for (const key of NUMBERS) {
    const number = given.get(key);
    if (number !== undefined && !(Number.isSafeInteger(number) && Number(number) > 0)) {
      problems.push(`${at}.${key} must be a whole number above 0`);
    }
  }
  const order = given.get('order');
  if (order !== undefined && (typeof order !== 'string' || parsePointer(order) === undefined)) {
    problems.push(`${at}.order must be a JSON pointer such as /data/id`);
  }
  if (problems.length === before) use(Object.fromEntries(given) as unknown as HandlerSpec);
}

function isHandler(value: unknown): value is DeliveryHandler {
  return typeof value === 'function';
}
