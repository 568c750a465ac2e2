import { hexBytes } from './encoding.ts';
import { hmacHeader } from './hmac.ts';
import { headerOf, type Scheme } from './scheme.ts';
import { bodyAlone } from './template.ts';

const HEADER = 'x-hub-signature-256';

const signature = hmacHeader(
  {
    header: HEADER,
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: 'sha256=',
    timestampHeader: undefined,
    tolerance: 0,
    template: bodyAlone.fill,
  },
  hexBytes,
);

/**
 * X-Hub-Signature-256: HMAC-SHA256 over the body alone. Neither the event nor the delivery id is signed and there is
 * no timestamp, so a request can be replayed.
 */
export const github: Scheme = {
  ...signature,
  verifier(secrets) {
    const verifier = signature.verifier(secrets);
    return (headers, now) => {
      // The log distinguishes an outdated sender from a wrong one.
      const sha1Only =
        headerOf(headers, HEADER) === undefined && headerOf(headers, 'x-hub-signature') !== undefined;
      return sha1Only ? 'sha1-only' : verifier(headers, now);
    };
  },
};
