import { describeError } from './describe-error.ts';
import type { HealthIndicator, HealthResult } from './health.ts';
import { isThenable } from './thenable.ts';

/** A check that never throws and answers in bounded time. */
export type BoundedCheck = () => HealthResult | Promise<HealthResult>;

/** A check that has not answered yet. */
interface Running {
  readonly since: number;
  readonly outcome: Promise<HealthResult>;
  late: boolean;
}

/**
 * Bounds an indicator: a failure is DOWN, no answer within `timeoutMs` is DOWN and aborts its signal.
 * At most one run is under way: who asks meanwhile shares its outcome, and once it is late gets DOWN
 * at once with the time it has been hanging.
 */
export function boundedCheck(indicator: HealthIndicator, timeoutMs: number): BoundedCheck {
  // Kept for the next run as long as runs end at once: a controller costs more than most checks.
  let controller = new AbortController();
  let running: Running | undefined;

  function start(answer: Promise<unknown>, abort: AbortController): Promise<HealthResult> {
    const { promise: outcome, resolve } = Promise.withResolvers<HealthResult>();
    const run: Running = { since: performance.now(), outcome, late: false };
    const timer = setTimeout(() => {
      run.late = true;
      const message = `no answer within ${timeoutMs} ms`;
      resolve({ status: 'DOWN', details: { error: `TimeoutError: ${message}` } });
      abort.abort(new DOMException(message, 'TimeoutError'));
    }, timeoutMs);
    const settle = (result: HealthResult) => {
      clearTimeout(timer);
      running = undefined;
      resolve(result);
    };
    answer.then(checked).then(settle, (error: unknown) => settle(failed(error)));
    running = run;
    return outcome;
  }

  return () => {
    if (running !== undefined) return running.late ? hanging(running.since) : running.outcome;
    try {
      const result: unknown = indicator.check(controller.signal);
      if (!isThenable(result)) return checked(result);
      const abort = controller;
      controller = new AbortController();
      return start(Promise.resolve(result), abort);
    } catch (error) {
      return failed(error);
    }
  };
}

function failed(error: unknown): HealthResult {
  return { status: 'DOWN', details: { error: describeError(error) } };
}

/** Checks come from users too, and not all of them are type-checked: no clear answer is no health. */
function checked(result: unknown): HealthResult {
  const { status } = Object(result) as { readonly status?: unknown };
  if (status === 'UP' || status === 'DOWN') return result as HealthResult;
  return failed(new TypeError('the check returned neither UP nor DOWN'));
}

function hanging(since: number): HealthResult {
  const hangingMs = Math.round(performance.now() - since);
  const error = `TimeoutError: the last check has been hanging for ${hangingMs} ms`;
  return { status: 'DOWN', details: { error, hangingMs } };
}
