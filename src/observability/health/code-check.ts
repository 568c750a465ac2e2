import { isThenable } from '../../core/maybe-promise.ts';
import type { HealthIndicator, HealthResult } from './health.ts';

/** A code, where 0 is healthy and every other number names the fault; or a whole result, or one made of parts. */
export type CheckAnswer = number | HealthResult | CheckParts;

/** Parts by name; the status is aggregated from theirs. */
interface CheckParts {
  readonly components: Readonly<Record<string, HealthResult | CheckParts>>;
}

/** A user's own check. */
export type CodeCheck = (signal: AbortSignal) => CheckAnswer | Promise<CheckAnswer>;

const UP: HealthResult = { status: 'UP' };

/** Turns a user's check into an indicator. */
export function codeCheck(
  name: string,
  check: CodeCheck,
  settings: Pick<HealthIndicator, 'timeoutMs' | 'ttlMs' | 'critical'> = {},
): HealthIndicator {
  return {
    ...settings,
    name,
    check(signal) {
      const code: unknown = check(signal);
      return isThenable(code) ? Promise.resolve(code).then(resultOf) : resultOf(code);
    },
  };
}

// contract 2.4 and 3: DOWN on a non-zero code, which is shown in the details.
function resultOf(code: unknown): HealthResult {
  if (code === 0) return UP;
  if (typeof code === 'number' && Number.isFinite(code)) return { status: 'DOWN', details: { code } };
  // checkedResult validates it.
  if (typeof code === 'object' && code !== null && ('status' in code || 'components' in code)) {
    return code as HealthResult;
  }
  const what = typeof code === 'number' ? String(code) : typeof code;
  throw new TypeError(`the check returned ${what} where a finite number is expected`);
}
