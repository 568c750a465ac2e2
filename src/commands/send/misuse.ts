import { UsageError } from '../argv/usage-error.ts';
import { sendUsage } from '../help/send-usage.ts';

/** The error for options that `portico send` cannot follow. */
export function misuse(problem: string): UsageError {
  return new UsageError([problem], sendUsage.topic);
}
