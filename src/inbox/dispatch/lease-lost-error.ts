/** The reason of the signal of an attempt whose job another process may have by now. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  readonly code = 'LEASE_LOST';

  constructor() {
    super('the lease of the delivery is lost or too old to be sure; another process may handle it now');
  }
}
