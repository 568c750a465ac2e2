/** A meter is declared twice in different ways, or used against its declaration: a bug. */
export class MeterError extends Error {
  override readonly name = 'MeterError';
  readonly code = 'METER';
}
