import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describeError } from '../../core/describe-error.ts';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { threadEnvironment } from '../../core/thread-environment.ts';
import type { ClaimedJob } from '../../inbox/delivery.ts';
import { AttemptError, UncountedError } from '../../inbox/dispatch/target.ts';
import type { HandlerLog } from '../../inbox/handler.ts';
import type { Entry, Order, Report, ThreadData } from './messages.ts';
import { errorOf, thrownOf } from './thrown.ts';
import { entryLength, UnreadEntries } from './unread-entries.ts';

export interface ThreadOptions {
  /** The configuration module, absolute. */
  readonly file: string;
  /** Limit of the JavaScript heap, in MiB. */
  readonly memory: number;
  readonly log: HandlerLog;
}

/** A thread that is told to end is terminated after this, in milliseconds; so is one that ignores an aborted signal. */
export const GRACE = 1_000;

interface Run {
  readonly number: number;
  readonly ended: PromiseWithResolvers<void>;
}

/**
 * A worker thread that runs one handler at a time. States: starting -> idle -> running -> idle; it can end in each, and
 * the delivery that it runs then fails, or is released when an earlier one has ended the thread.
 */
export class HandlerThread {
  /** Settles when the thread has its handlers, or when it has ended without. */
  readonly started: Promise<void>;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  #run: Run | undefined;
  #runs = 0;
  #usable = true;
  #terminated = false;
  /** Why it has ended, or is about to. */
  #why: Error | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { file, memory } = options;
    const unread = new UnreadEntries();
    // `.ts` when run from source, `.js` in the built package.
    const script = `src/webhook/isolate/handler-thread${extname(import.meta.url)}`;
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
    // Nobody may be waiting for it any more.
    this.started.catch(() => {});
    this.#worker.on('message', (report: Report) => {
      if (report.kind === 'ready') started.resolve();
      else if (report.kind === 'entry') {
        unread.read(entryLength(report.entry));
        this.#write(report.entry);
      } else this.#handle(report);
    });
    this.#worker.on('error', (error) => this.#fail(this.#describe(error), errorOf(thrownOf(error))));
    this.#worker.on('exit', (code) => {
      this.#fail(`exit code ${code}`);
      started.reject(this.#why);
      if (this.#run !== undefined) this.#run.ended.reject(this.#why);
      else if (!this.#terminated)
        options.log.error({ err: this.#why }, 'idle worker thread of handlers ended');
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

  /** Runs the handler of an event; rejects with what it throws, or with why the thread has ended meanwhile. */
  run(job: ClaimedJob, event: string): Promise<void> {
    const run = { number: ++this.#runs, ended: Promise.withResolvers<void>() };
    this.#run = run;
    // The body may be a part of a larger buffer, all of which would be copied.
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

  /** Ends the thread, whatever it is doing. */
  terminate(): void {
    this.#usable = false;
    this.#terminated = true;
    void this.#worker.terminate();
  }

  /** Ends the thread as if its handlers had no more to do: the listeners for its exit run. */
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
      // A thread that fails without a delivery to blame fails the one that it runs, so that none runs for ever.
      const isOthers = run !== undefined && run !== this.#run?.number;
      this.#fail(why, error && errorOf(error), isOthers ? UncountedError : AttemptError);
    } else if (report.kind === 'stray') {
      this.#usable = false;
      const err = errorOf(report.error);
      this.#options.log.error({ err }, 'error of a delivery whose handler had ended');
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
