import { hexBytes } from './encoding.ts';
import { type HmacHeader, hmacHeaderSigner, hmacHeaderVerifier } from './hmac-header.ts';
import { headerOf, refused, type Scheme } from './scheme.ts';
import { bodyAlone } from './template.ts';
import { textSecretProblem } from './text-secret.ts';

const HEADER = 'x-hub-signature-256';

const spec: HmacHeader = {
  header: HEADER,
  algorithm: 'sha256',
  encoding: 'hex',
  decode: hexBytes,
  prefix: 'sha256=',
  timestampHeader: undefined,
  tolerance: 0,
  template: bodyAlone.fill,
};

/**
 * X-Hub-Signature-256: HMAC-SHA256 over the body alone. Neither the event nor the delivery id is signed and there is
 * no timestamp, so whoever has seen a request can send it again.
 */
export const github: Scheme<unknown> = {
  secretProblem: textSecretProblem,
  verifier(secrets) {
    const verifier = hmacHeaderVerifier(secrets, spec);
    return (headers, now) => {
      // Told apart in the log: the sender is old, not wrong.
      const old =
        headerOf(headers, HEADER) === undefined && headerOf(headers, 'x-hub-signature') !== undefined;
      return old ? refused('sha1-only') : verifier(headers, now);
    };
  },
  signer: (secrets) => hmacHeaderSigner(secrets, spec),
};
