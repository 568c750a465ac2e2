/** A meter is declared or used against its own declaration: a mistake in the program. */
export class MeterError extends Error {
  override readonly name = 'MeterError';
  readonly code = 'METER';
}
