import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describeError } from '../../core/errors.ts';
import { PACKAGE_ROOT, threadEnvironment } from '../../core/package-root.ts';
import type { HandlerSpec } from '../config.ts';
import type { ClaimedJob, HandlerLog } from '../delivery.ts';
import { AttemptError, type Target, UncountedError } from '../dispatch/target.ts';

/** Maximum threads of a handler without its own concurrency; each has a JavaScript engine in memory. */
const MAX_THREADS = 4;

interface IsolationDefaults {
  /** Whether to isolate handlers that do not set `isolate`. */
  readonly isolate: boolean;
  readonly concurrency: number;
}

/** Gives each handler an explicit `isolate` and, if isolated, a concurrency: its number of threads. */
export function withIsolation(
  handlers: ReadonlyMap<string, HandlerSpec>,
  defaults: IsolationDefaults,
): ReadonlyMap<string, HandlerSpec> {
  return new Map<string, HandlerSpec>(
    Array.from(handlers, ([event, spec]) => {
      if (!(spec.isolate ?? defaults.isolate)) return [event, { ...spec, isolate: false }] as const;
      const concurrency = spec.concurrency ?? Math.min(defaults.concurrency, MAX_THREADS);
      return [event, { ...spec, isolate: true, concurrency }] as const;
    }),
  );
}

/** One problem for each isolated handler outside a configuration module, which no thread can import. */
export function isolationProblems(
  handlers: ReadonlyMap<string, HandlerSpec>,
  path: string,
): readonly string[] {
  const isolated = Array.from(handlers).filter(([, { isolate }]) => isolate === true);
  return isolated.map(
    ([event]) =>
      `${path}.${event} cannot be isolated: a worker thread imports its handlers from a configuration module (portico.config.ts or .js), and functions cannot be sent to it; omit "isolate", or run the service with such a module`,
  );
}

/** Maximum time for a thread to start, in milliseconds: importing the configuration module may be slow. */
const START_TIMEOUT = 30_000;
/** Maximum delay of a timer, in milliseconds. */
const MAX_TIMER = 2_147_483_647;

/**
 * Wraps a target so that each attempt runs the handler of `event` in a worker thread. The timeout starts once
 * the thread has started; a handler that ignores its signal for `GRACE` is ended together with its thread.
 */
export function isolatedTarget(target: Target, event: string, pool: ThreadPool): Target {
  const { timeout } = target;
  return {
    ...target,
    // A fallback: attempts normally end by the timeout below.
    timeout: Math.min(timeout + START_TIMEOUT + 2 * GRACE, MAX_TIMER),
    async run(job, signal) {
      const thread = pool.take();
      try {
        await started(thread, signal);
        await attempt(thread, job, { event, timeout, signal });
      } finally {
        pool.give(thread);
      }
    },
  };
}

/** Waits until a thread has started; rejects if it fails to start or the signal aborts first. */
async function started(thread: HandlerThread, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    thread.terminate();
    reject(new AttemptError(`its worker thread did not start within ${START_TIMEOUT} ms`));
  }, START_TIMEOUT);
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    await Promise.race([thread.started, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

interface AttemptOptions {
  readonly event: string;
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Runs a handler in a started thread; rejects with its error or, once it has ended, with the timeout. */
async function attempt(thread: HandlerThread, job: ClaimedJob, options: AttemptOptions): Promise<void> {
  const { event, timeout, signal } = options;
  let timedOut: string | undefined;
  let termination: NodeJS.Timeout | undefined;
  const abort = (reason: unknown) => {
    thread.abort(reason);
    termination ??= setTimeout(() => thread.terminate(), GRACE);
  };
  const timer = setTimeout(() => {
    timedOut = `took longer than ${timeout} ms`;
    abort(new AttemptError(timedOut));
  }, timeout);
  const onAbort = () => abort(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    await thread.run(job, event);
  } catch (error) {
    if (timedOut === undefined) throw error;
    if (thread.terminated) timedOut += ' and ignored its signal, so its worker thread was ended';
  } finally {
    clearTimeout(timer);
    clearTimeout(termination);
    signal.removeEventListener('abort', onAbort);
  }
  if (timedOut !== undefined) throw new AttemptError(timedOut);
}

/** A thread ends after this long without a run, in milliseconds. */
const IDLE = 30_000;

/** The worker threads of isolated handlers: one per running delivery, and idle ones. */
export class ThreadPool implements AsyncDisposable {
  readonly #options: ThreadOptions;
  readonly #threads = new Set<HandlerThread>();
  /** In order of last use. */
  readonly #idle = new Map<HandlerThread, NodeJS.Timeout>();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** The number of threads. */
  get size(): number {
    return this.#threads.size;
  }

  /** An idle or new thread for one delivery; it may still be starting. */
  take(): HandlerThread {
    for (const [thread, timer] of [...this.#idle].reverse()) {
      clearTimeout(timer);
      this.#idle.delete(thread);
      if (thread.usable) return thread;
    }
    const thread = new HandlerThread(this.#options);
    this.#threads.add(thread);
    void thread.ended.then(() => {
      this.#threads.delete(thread);
      clearTimeout(this.#idle.get(thread));
      this.#idle.delete(thread);
    });
    return thread;
  }

  /** Returns a thread to the pool after its delivery has ended. */
  give(thread: HandlerThread): void {
    if (!this.#threads.has(thread)) return;
    if (!thread.usable) {
      if (!thread.terminated) void thread.close();
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.delete(thread);
      void thread.close();
    }, IDLE);
    this.#idle.set(thread, timer.unref());
  }

  /** Ends all threads. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#threads, (thread) => thread.close()));
  }
}

interface ThreadOptions {
  /** Absolute path of the configuration module. */
  readonly file: string;
  /** Limit of the JavaScript heap in MiB. */
  readonly memory: number;
  readonly log: HandlerLog;
}

/** How long a closing thread or an aborted handler may take before it is terminated, in milliseconds. */
const GRACE = 1_000;

interface Run {
  readonly number: number;
  readonly ended: PromiseWithResolvers<void>;
}

/**
 * A worker thread that runs one handler at a time. States: starting -> idle -> running -> idle. If it ends
 * while running, the delivery fails, or is released if an earlier delivery caused the end.
 */
class HandlerThread {
  /** Resolves once the thread has imported its handlers; rejects if it ends before. */
  readonly started: Promise<void>;
  /** Resolves once the thread has ended. */
  readonly ended: Promise<void>;
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  #run: Run | undefined;
  #runs = 0;
  #usable = true;
  #terminated = false;
  /** Why the thread has ended or is about to. */
  #why: Error | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { file, memory } = options;
    const unread = new UnreadEntries();
    // `.ts` when run from source, `.js` in the built package.
    const script = `src/inbox/isolate/handler-thread${extname(import.meta.url)}`;
    this.#worker = new Worker(new URL(script, PACKAGE_ROOT), {
      name: 'handler',
      argv: process.argv.slice(2),
      env: threadEnvironment(),
      workerData: { file, unread: unread.buffer } satisfies ThreadData,
      resourceLimits: { maxOldGenerationSizeMb: memory },
    });
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    this.started = started.promise;
    this.ended = ended.promise;
    // It may reject while no attempt is waiting for it.
    this.started.catch(() => {});
    this.#worker.on('message', (report: Report) => {
      if (report.kind === 'ready') started.resolve();
      else if (report.kind === 'entry') {
        unread.read(report.entry);
        this.#write(report.entry);
      } else this.#handle(report);
    });
    this.#worker.on('error', (error) => this.#fail(this.#describe(error), errorOf(thrownOf(error))));
    this.#worker.on('exit', (code) => {
      this.#fail(`exit code ${code}`);
      started.reject(this.#why);
      if (this.#run !== undefined) this.#run.ended.reject(this.#why);
      else if (!this.#terminated) options.log.error({ err: this.#why }, 'idle worker thread ended');
      ended.resolve();
    });
  }

  /** Whether it can run another delivery. */
  get usable(): boolean {
    return this.#usable;
  }

  /** Whether it was terminated, or told to close. */
  get terminated(): boolean {
    return this.#terminated;
  }

  /** Runs the handler of an event; rejects with its error, or with the reason why the thread ended. */
  run(job: ClaimedJob, event: string): Promise<void> {
    const run = { number: ++this.#runs, ended: Promise.withResolvers<void>() };
    this.#run = run;
    // Copied, because the body may be a view of a larger buffer, which would be copied whole.
    const body = Uint8Array.from(job.delivery.body);
    const delivery = { ...job.delivery, body };
    this.#tell({ kind: 'run', run: run.number, event, job: { ...job, delivery } }, [body.buffer]);
    return run.ended.promise;
  }

  /** Aborts the signal of the running handler. */
  abort(reason: unknown): void {
    if (this.#run !== undefined)
      this.#tell({ kind: 'abort', run: this.#run.number, reason: thrownOf(reason) });
  }

  /** Ends the thread immediately. */
  terminate(): void {
    this.#usable = false;
    this.#terminated = true;
    void this.#worker.terminate();
  }

  /** Ends the thread through `process.exit`, so that its exit listeners run. */
  async close(): Promise<void> {
    this.#usable = false;
    this.#terminated = true;
    this.#tell({ kind: 'close' });
    const timer = setTimeout(() => this.terminate(), GRACE);
    await this.ended;
    clearTimeout(timer);
  }

  #tell(order: Order, transferred: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(order, transferred);
  }

  #write({ level, fields, error, message }: Entry): void {
    const entry = JSON.parse(fields) as Record<string, unknown>;
    this.#options.log[level](error === undefined ? entry : { ...entry, err: errorOf(error) }, message);
  }

  #handle(report: Exclude<Report, { readonly kind: 'ready' | 'entry' }>): void {
    if (report.kind === 'ending') {
      const { run, why, error } = report;
      // A failure that belongs to no delivery fails the running one, which would otherwise never end.
      const isOthers = run !== undefined && run !== this.#run?.number;
      this.#fail(why, error && errorOf(error), isOthers ? UncountedError : AttemptError);
    } else if (report.kind === 'stray') {
      this.#usable = false;
      const err = errorOf(report.error);
      this.#options.log.error({ err }, 'uncaught error of a delivery whose handler had ended');
    } else if (report.run === this.#run?.number) {
      const { ended } = this.#run;
      this.#run = undefined;
      if (report.error === undefined) ended.resolve();
      else ended.reject(errorOf(report.error));
    }
  }

  #fail(why: string, cause?: Error, Kind: typeof AttemptError = AttemptError): void {
    this.#usable = false;
    if (this.#why !== undefined) return;
    this.#why = new Kind(`its worker thread ended: ${why}`);
    if (cause !== undefined) this.#why.cause = cause;
  }

  #describe(error: unknown): string {
    if (thrownOf(error).code !== 'ERR_WORKER_OUT_OF_MEMORY') return describeError(error);
    return `it needed more than ${this.#options.memory} MiB of memory`;
  }
}

/** A thread with more unread log characters than this waits for the main thread. */
const MAX_UNREAD = 1_048_576;

/** Counts, for two threads, the characters logged by one that the main thread has not read yet. */
export class UnreadEntries {
  readonly buffer: SharedArrayBuffer;
  readonly #count: Int32Array;

  constructor(buffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#count = new Int32Array(buffer);
  }

  /** Counts an entry about to be sent; blocks the thread while too much is unread, which bounds memory. */
  wrote(entry: Pick<Entry, 'fields' | 'message'>): void {
    for (let unread = Atomics.load(this.#count, 0); unread > MAX_UNREAD; ) {
      Atomics.wait(this.#count, 0, unread);
      unread = Atomics.load(this.#count, 0);
    }
    Atomics.add(this.#count, 0, entryLength(entry));
  }

  read(entry: Pick<Entry, 'fields' | 'message'>): void {
    Atomics.sub(this.#count, 0, entryLength(entry));
    Atomics.notify(this.#count, 0);
  }
}

/** The length of an entry in characters. */
function entryLength({ fields, message }: Pick<Entry, 'fields' | 'message'>): number {
  return fields.length + message.length;
}

/** The data that a thread starts with. */
export interface ThreadData {
  /** Absolute path of the configuration module. */
  readonly file: string;
  /** The buffer of `UnreadEntries`. */
  readonly unread: SharedArrayBuffer;
}

/** Messages to a thread. `run` numbers the deliveries that it handles. */
export type Order =
  | { readonly kind: 'run'; readonly run: number; readonly event: string; readonly job: ClaimedJob }
  | { readonly kind: 'abort'; readonly run: number; readonly reason: Thrown }
  | { readonly kind: 'close' };

/** An entry of a handler's log. */
export interface Entry {
  readonly level: keyof HandlerLog;
  /** A JSON object. */
  readonly fields: string;
  readonly error: Thrown | undefined;
  readonly message: string;
}

/** Messages from a thread. */
export type Report =
  /** The handlers are imported. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'entry'; readonly entry: Entry }
  /** A handler has ended, possibly with an error. */
  | { readonly kind: 'ended'; readonly run: number; readonly error?: Thrown }
  /** An uncaught error of a delivery whose handler had already ended; the thread accepts no more runs. */
  | { readonly kind: 'stray'; readonly error: Thrown }
  /** The thread ends, caused by the delivery `run` if known. */
  | {
      readonly kind: 'ending';
      readonly run: number | undefined;
      readonly why: string;
      readonly error?: Thrown;
    };

/** An error in transit between threads: a structured clone would lose its class and custom fields. */
interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: string | undefined;
}

/** Serializes any thrown value for another thread. */
export function thrownOf(error: unknown): Thrown {
  const text = describeError(error);
  const end = text.indexOf(': ');
  const [name, message] = [text.slice(0, end), text.slice(end + 2)];
  return { name, message, stack: textOf(error, 'stack'), code: textOf(error, 'code') };
}

/** Recreates an error of another thread, with a class of the same name. */
export function errorOf({ name, message, stack, code }: Thrown): Error {
  const { [name]: Named = Error } = { [name]: class extends Error {} };
  const error = new Named(message);
  Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}

function textOf(error: unknown, key: 'stack' | 'code'): string | undefined {
  try {
    const value = (error as { readonly [K in typeof key]?: unknown } | null | undefined)?.[key];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
