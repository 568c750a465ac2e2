import type { HandlerLog, HandlerLogMethod } from '../../inbox/handler.ts';
import type { Entry } from './messages.ts';
import { thrownOf } from './thrown.ts';

/** The log of one delivery in a worker thread: `send` takes its entries to the main thread, which writes them. */
export function threadLog(bindings: object, send: (entry: Entry) => void): HandlerLog {
  const method = (level: keyof HandlerLog): HandlerLogMethod => {
    return (first: unknown, second?: string) => {
      if (typeof first === 'string') return send(entryOf(level, bindings, first));
      const fields = first instanceof Error ? { err: first } : Object(first);
      send(entryOf(level, { ...bindings, ...fields }, second ?? ''));
    };
  };
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

function entryOf(level: keyof HandlerLog, fields: object, message: string): Entry {
  const { err, ...others } = fields as { readonly err?: unknown };
  const isError = err instanceof Error;
  return {
    level,
    fields: jsonOf(isError ? others : fields),
    error: isError ? thrownOf(err) : undefined,
    message: String(message),
  };
}

/** Fields as JSON; one that has none, such as a cycle, as text. */
function jsonOf(fields: object): string {
  try {
    return JSON.stringify(fields, withoutBigInts);
  } catch {
    const safe = Object.entries(fields).map(([name, value]) => {
      try {
        return [name, JSON.parse(JSON.stringify(value, withoutBigInts) ?? 'null')];
      } catch {
        return [name, Object.prototype.toString.call(value)];
      }
    });
    return JSON.stringify(Object.fromEntries(safe));
  }
}

function withoutBigInts(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
