import { UsageError } from '../argv/usage-error.ts';
import { sendUsage } from '../help/send-usage.ts';

/** The error for a delivery that cannot be sent as `portico send` was told. */
export function misuse(problem: string): UsageError {
  return new UsageError([problem], sendUsage.topic);
}
