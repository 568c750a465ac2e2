import { base64Bytes, hexBytes } from './encoding.ts';
import { type HmacHeader, type HmacParams, hmacHeaderSigner, hmacHeaderVerifier } from './hmac-header.ts';
import type { Scheme } from './scheme.ts';
import { textSecretProblem } from './text-secret.ts';

const specOf = (params: HmacParams): HmacHeader => ({
  ...params,
  // Many senders use upper-case digits.
  decode: params.encoding === 'hex' ? (text, length) => hexBytes(text.toLowerCase(), length) : base64Bytes,
});

/** An HMAC in one header, with configurable layout. */
export const hmac: Scheme<HmacParams> = {
  secretProblem: textSecretProblem,
  verifier: (secrets, params) => hmacHeaderVerifier(secrets, specOf(params)),
  signer: (secrets, params) => hmacHeaderSigner(secrets, specOf(params)),
};
