/** The options of the management door are invalid; the message says what to change. */
export class ManagementOptionsError extends Error {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
