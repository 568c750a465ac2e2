import { AsyncLocalStorage } from 'node:async_hooks';
import { basename } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { importModule, readModuleSettings } from '../../config/module.ts';
import { describeError } from '../../core/errors.ts';
import { quote } from '../../core/text.ts';
import { headersOfTrace, storedTraceFields } from '../../core/trace.ts';
import { type HandlerSpec, readHandlers } from '../config.ts';
import { eventFields, type HandlerLog } from '../delivery.ts';
import { deliveryOf } from '../event-names.ts';
import {
  type Entry,
  errorOf,
  type Order,
  type Report,
  type ThreadData,
  thrownOf,
  UnreadEntries,
} from './isolated.ts';

// The worker thread of isolated handlers: it handles one delivery at a time, so a crash of the thread affects
// only that.
const port = parentPort;
if (port === null) throw new Error('handler-thread.ts runs as a worker thread only');

const { file, unread } = workerData as ThreadData;
const unreadEntries = new UnreadEntries(unread);
/** The run that the executing code belongs to. */
const current = new AsyncLocalStorage<number>();
/** The run in progress. */
let running: { readonly run: number; readonly abort: AbortController } | undefined;
let saidWhy = false;

function report(message: Report): void {
  port?.postMessage(message);
}

/** Reports why the thread ends, once. */
function ending(why: string, run = current.getStore(), error?: ReturnType<typeof thrownOf>): void {
  if (saidWhy) return;
  saidWhy = true;
  report({ kind: 'ending', run, why, ...(error !== undefined && { error }) });
}

function onUnhandled(error: unknown): void {
  const culprit = current.getStore();
  if (culprit !== undefined && culprit !== running?.run) {
    report({ kind: 'stray', error: thrownOf(error) });
    return;
  }
  ending(`an uncaught error, ${describeError(error)}`, culprit, thrownOf(error));
  process.exit(1);
}
process.on('uncaughtException', onUnhandled).on('unhandledRejection', onUnhandled);
process.on('exit', (code) => ending(`process.exit(${code})`));

function sendEntry(entry: Entry): void {
  unreadEntries.wrote(entry);
  report({ kind: 'entry', entry });
}

async function handle({ run, event, job }: Extract<Order, { readonly kind: 'run' }>): Promise<void> {
  const abort = new AbortController();
  running = { run, abort };
  try {
    const handler = handlers.get(event)?.handler;
    if (handler === undefined)
      throw new Error(`${file} has no handler for ${quote(event)} in a worker thread`);
    const { id } = job.delivery;
    const own = storedTraceFields(job.delivery.trace);
    const log = threadLog(
      { delivery: id, ...eventFields(job.delivery), attempt: job.attempt, ...own },
      sendEntry,
    );
    const trace = headersOfTrace(job.delivery.trace);
    await current.run(run, () => handler(deliveryOf(job, event), { signal: abort.signal, log, trace }));
    running = undefined;
    report({ kind: 'ended', run });
  } catch (error) {
    running = undefined;
    report({ kind: 'ended', run, error: thrownOf(error) });
  }
}

const handlers = await importHandlers(file).catch((error: unknown): never => {
  ending(`the configuration module cannot be imported, ${describeError(error)}`, undefined, thrownOf(error));
  return process.exit(1);
});
port.on('message', (order: Order) => {
  if (order.kind === 'run') void handle(order);
  else if (order.kind === 'close') process.exit(0);
  else if (running?.run === order.run) running.abort.abort(errorOf(order.reason));
});
report({ kind: 'ready' });

/** The handlers of a configuration module; functions cannot be sent between threads. */
async function importHandlers(file: string): Promise<ReadonlyMap<string, HandlerSpec>> {
  const name = basename(file);
  const imported = await importModule({ path: file, name });
  if ('problem' in imported) throw new Error(imported.problem);
  const { code } = readModuleSettings(imported.exported, name);
  const problems: string[] = [];
  const handlers = readHandlers({ value: code.get('webhook.handlers'), path: name }, problems);
  if (problems.length > 0) throw new Error(problems.join('; '));
  return handlers;
}

/** The log of one delivery in a worker thread; `send` passes its entries to the main thread. */
function threadLog(bindings: object, send: (entry: Entry) => void): HandlerLog {
  const method = (level: keyof HandlerLog): HandlerLog['info'] => {
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

/** Fields as JSON; values that cannot be converted, such as cycles, become text. */
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
