import { hexBytes } from './encoding.ts';
import { type HmacHeader, hmacHeaderSigner, hmacHeaderVerifier } from './hmac-header.ts';
import type { Scheme } from './scheme.ts';
import { textSecretProblem } from './text-secret.ts';

export interface SlackParams {
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
}

const specOf = ({ tolerance }: SlackParams): HmacHeader => ({
  header: 'x-slack-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  decode: hexBytes,
  prefix: 'v0=',
  timestampHeader: 'x-slack-request-timestamp',
  tolerance,
  template: (timestamp) => ({ before: `v0:${timestamp}:`, after: '' }),
});

/** Slack's v0: HMAC-SHA256 over `v0:{timestamp}:{body}`. */
export const slack: Scheme<SlackParams> = {
  secretProblem: textSecretProblem,
  verifier: (secrets, params) => hmacHeaderVerifier(secrets, specOf(params)),
  signer: (secrets, params) => hmacHeaderSigner(secrets, specOf(params)),
};
