import { DatabaseOpenError } from '../../core/store-errors.ts';

/** Why a file cannot be opened. */
export function openFailure(file: string, cause: unknown): DatabaseOpenError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new DatabaseOpenError(`The database ${file} cannot be opened: ${reason}`, { cause });
}
