import { ExpectedError } from '../../core/expected-error.ts';

/** A certificate, its key or an authority for clients cannot be used; the start ends with this message. */
export class CertificateError extends ExpectedError {
  override readonly name = 'CertificateError';
  readonly code = 'TLS_FILES';
}
