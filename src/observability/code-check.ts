import type { HealthIndicator, HealthResult } from './health.ts';
import { isThenable } from './thenable.ts';

/** A user's own check: 0 is healthy, every other number is the code of what is wrong. */
export type CodeCheck = (signal: AbortSignal) => number | Promise<number>;

const UP: HealthResult = { status: 'UP' };

/** Makes an indicator of a check that returns a code. */
export function codeCheck(name: string, check: CodeCheck): HealthIndicator {
  return {
    name,
    check(signal) {
      const code: unknown = check(signal);
      return isThenable(code) ? Promise.resolve(code).then(resultOf) : resultOf(code);
    },
  };
}

// contract 2.4 and 3: DOWN on a non-zero code, which is among the details.
function resultOf(code: unknown): HealthResult {
  if (code === 0) return UP;
  if (typeof code === 'number' && Number.isFinite(code)) return { status: 'DOWN', details: { code } };
  const what = typeof code === 'number' ? String(code) : typeof code;
  throw new TypeError(`the check returned ${what} where a finite number is expected`);
}
