import { ExpectedError } from '../../core/errors.ts';

/** A backup or a restore was refused or failed; the message says what to do. */
export class BackupError extends ExpectedError {
  override readonly name = 'BackupError';
  readonly code = 'BACKUP';
}
