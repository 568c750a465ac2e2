import type { ClaimedJob } from '../../src/inbox/delivery.ts';
import { Dispatcher } from '../../src/inbox/dispatch/dispatcher.ts';
import type { Target } from '../../src/inbox/dispatch/target.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';

type DispatcherOptions = ConstructorParameters<typeof Dispatcher>[0];

/** Starts a dispatcher of the target `t`, with what it reports; disposing of it stops it. */
export function startDispatcher(
  inbox: Inbox,
  run: Target['run'],
  { target = {}, ...options }: Partial<DispatcherOptions> & { readonly target?: Partial<Target> } = {},
) {
  const settled: { readonly id: string; readonly outcome: string }[] = [];
  const lost: string[] = [];
  const overdue: string[] = [];
  const failures: unknown[] = [];
  const backoff = { base: 0, cap: 0 };
  const dispatcher = new Dispatcher({
    inbox,
    targets: [{ name: 't', run, concurrency: 16, timeout: 60_000, maxAttempts: 10, backoff, ...target }],
    events: {
      settled: ({ delivery: { id } }, outcome) => settled.push({ id, outcome }),
      leaseLost: ({ delivery: { id } }) => lost.push(id),
      overdue: ({ delivery: { id } }) => overdue.push(id),
      storeFailed: (error) => failures.push(error),
    },
    interval: 5,
    ...options,
  });
  dispatcher.start();
  const stop = (deadline = AbortSignal.abort()) => dispatcher.stop(deadline);
  return { dispatcher, settled, lost, overdue, failures, stop, [Symbol.asyncDispose]: () => stop() };
}

/** A target whose attempts go on until the test ends them. */
export function manualTarget() {
  const attempts: { readonly id: string; readonly signal: AbortSignal; end(error?: Error): void }[] = [];
  const run = (job: ClaimedJob, signal: AbortSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (error?: Error) => (error === undefined ? resolve() : reject(error));
    attempts.push({ id: job.delivery.id, signal, end });
    return promise;
  };
  return { attempts, run };
}
