import { UsageError } from '../argv/usage-error.ts';
import { usages } from '../help/usages.ts';

/** The error for options that `portico send` cannot follow. */
export function misuse(problem: string): UsageError {
  return new UsageError([problem], usages.send.topic);
}
