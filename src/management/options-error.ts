import { ExpectedError } from '../core/expected-error.ts';

/** The options of the management door are invalid; the message says what to change. */
export class ManagementOptionsError extends ExpectedError {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
