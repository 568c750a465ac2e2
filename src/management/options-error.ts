/** The management door cannot be built like this; the message says what to change. */
export class ManagementOptionsError extends Error {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
