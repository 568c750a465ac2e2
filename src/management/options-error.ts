import { ExpectedError } from '../core/expected-error.ts';

/** The management door cannot be built like this; the message says what to change. */
export class ManagementOptionsError extends ExpectedError {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
