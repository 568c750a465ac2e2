import type { ClaimedJob } from '../../inbox/delivery.ts';
import { AttemptError, type Target } from '../../inbox/dispatch/target.ts';
import { GRACE, type HandlerThread } from './thread.ts';
import type { ThreadPool } from './thread-pool.ts';

/** Time for a thread to start, in milliseconds: the configuration module may do a lot when it is imported. */
const START_TIMEOUT = 30_000;
/** The longest wait of a timer, in milliseconds. */
const MAX_TIMER = 2_147_483_647;

/**
 * The same target, each of whose attempts runs the handler of `event` in a worker thread. The timeout begins when the
 * thread has started, and a handler that ignores its signal for `GRACE` ends with its thread.
 */
export function isolatedTarget(target: Target, event: string, pool: ThreadPool): Target {
  const { timeout } = target;
  return {
    ...target,
    // Has an attempt end that this target should have ended.
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

/** Waits until a thread has started; rejects when it cannot, or when the signal aborts first. */
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

/** Runs a handler in a thread that has started; rejects with its error, or with the timeout once it has ended. */
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
