import { describeError } from '../../core/describe-error.ts';
import { isThenable } from '../../core/maybe-promise.ts';
import { checkedResult } from './checked-result.ts';
import type { HealthIndicator, HealthResult } from './health.ts';

/** A check that never throws and has a timeout. */
export type BoundedCheck = () => HealthResult | Promise<HealthResult>;

/** Called with the result of each run, at its timeout at the latest, and how long it took in milliseconds. */
export type OnChecked = (name: string, result: HealthResult, durationMs: number) => void;

/** A check that has not answered yet. */
interface Running {
  readonly since: number;
  readonly outcome: Promise<HealthResult>;
  late: boolean;
}

/**
 * Bounds an indicator: a failure is DOWN, no answer within `timeoutMs` is DOWN and aborts its signal.
 * At most one run is under way: calls meanwhile share its outcome, and once it is late get DOWN at once with the time
 * it has been hanging.
 */
export function boundedCheck(
  indicator: HealthIndicator,
  timeoutMs: number,
  onChecked: OnChecked = () => {},
): BoundedCheck {
  const { name } = indicator;
  // Reused while runs are synchronous, because a controller costs more than most checks.
  let controller = new AbortController();
  let running: Running | undefined;

  function ended(since: number, result: HealthResult): HealthResult {
    onChecked(name, result, performance.now() - since);
    return result;
  }

  function start(answer: Promise<unknown>, since: number, abort: AbortController): Promise<HealthResult> {
    const { promise: outcome, resolve } = Promise.withResolvers<HealthResult>();
    const run: Running = { since, outcome, late: false };
    const timer = setTimeout(() => {
      run.late = true;
      const message = `no answer within ${timeoutMs} ms`;
      resolve(ended(since, { status: 'DOWN', details: { error: `TimeoutError: ${message}` } }));
      abort.abort(new DOMException(message, 'TimeoutError'));
    }, timeoutMs);
    const settle = (result: HealthResult) => {
      clearTimeout(timer);
      running = undefined;
      if (!run.late) resolve(ended(since, result));
    };
    answer.then(checkedResult).then(settle, (error: unknown) => settle(failed(error)));
    running = run;
    return outcome;
  }

  return () => {
    if (running !== undefined) return running.late ? hanging(running.since) : running.outcome;
    const since = performance.now();
    try {
      const result: unknown = indicator.check(controller.signal);
      if (!isThenable(result)) return ended(since, checkedResult(result));
      const abort = controller;
      controller = new AbortController();
      return start(Promise.resolve(result), since, abort);
    } catch (error) {
      return ended(since, failed(error));
    }
  };
}

function failed(error: unknown): HealthResult {
  return { status: 'DOWN', details: { error: describeError(error) } };
}

function hanging(since: number): HealthResult {
  const hangingMs = Math.round(performance.now() - since);
  const error = `TimeoutError: the last check has been hanging for ${hangingMs} ms`;
  return { status: 'DOWN', details: { error, hangingMs } };
}
