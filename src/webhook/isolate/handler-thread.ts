import { AsyncLocalStorage } from 'node:async_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { describeError } from '../../core/describe-error.ts';
import { quote } from '../../core/quote.ts';
import { eventFields } from '../../inbox/delivery.ts';
import { headersOfTrace, storedTraceFields } from '../../observability/trace/trace-fields.ts';
import { deliveryOf } from '../handler-target.ts';
import type { Entry, Order, Report, ThreadData } from './messages.ts';
import { importHandlers } from './thread-handlers.ts';
import { threadLog } from './thread-log.ts';
import { errorOf, type Thrown, thrownOf } from './thrown.ts';
import { entryLength, UnreadEntries } from './unread-entries.ts';

// The thread of isolated handlers: it handles one delivery at a time, and whatever ends it ends that one alone.
const port = parentPort;
if (port === null) throw new Error('handler-thread.ts runs as a worker thread only');

const { file, unread } = workerData as ThreadData;
const unreadEntries = new UnreadEntries(unread);
/** The run that the running code belongs to. */
const current = new AsyncLocalStorage<number>();
/** The run whose handler has not ended. */
let running: { readonly run: number; readonly abort: AbortController } | undefined;
let saidWhy = false;

function report(message: Report): void {
  port?.postMessage(message);
}

/** Says why the thread ends, once. */
function ending(why: string, run = current.getStore(), error?: Thrown): void {
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
  ending(`an error that nobody handled, ${describeError(error)}`, culprit, thrownOf(error));
  process.exit(1);
}
process.on('uncaughtException', onUnhandled).on('unhandledRejection', onUnhandled);
process.on('exit', (code) => ending(`process.exit(${code})`));

function sendEntry(entry: Entry): void {
  unreadEntries.wrote(entryLength(entry));
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
