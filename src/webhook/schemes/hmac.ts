import { base64Bytes, hexBytes } from './encoding.ts';
import { type HmacHeader, hmacHeaderSigner, hmacHeaderVerifier } from './hmac-header.ts';
import type { HmacAlgorithm } from './hmac-keys.ts';
import type { Scheme } from './scheme.ts';
import type { Template } from './template.ts';
import { textSecretProblem } from './text-secret.ts';

export interface HmacParams {
  /** The header with the signature, in lower case. */
  readonly header: string;
  readonly algorithm: HmacAlgorithm;
  readonly encoding: 'hex' | 'base64';
  /** The text before the signature in its header, such as `sha256=`. */
  readonly prefix: string;
  /** The header with the time in whole seconds, in lower case; undefined when there is none. */
  readonly timestampHeader: string | undefined;
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
  /** What is signed. */
  readonly template: Template;
}

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
