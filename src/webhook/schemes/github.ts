import { hexBytes } from './encoding.ts';
import { hmacScheme } from './hmac-header.ts';
import { headerOf, refused, type Scheme } from './scheme.ts';
import { bodyAlone } from './template.ts';

const HEADER = 'x-hub-signature-256';

const signature = hmacScheme(() => ({
  header: HEADER,
  algorithm: 'sha256',
  encoding: 'hex',
  decode: hexBytes,
  prefix: 'sha256=',
  timestampHeader: undefined,
  tolerance: 0,
  template: bodyAlone.fill,
}));

/**
 * X-Hub-Signature-256: HMAC-SHA256 over the body alone. Neither the event nor the delivery id is signed and there is
 * no timestamp, so a request can be replayed.
 */
export const github: Scheme<unknown> = {
  ...signature,
  verifier(secrets, params) {
    const verifier = signature.verifier(secrets, params);
    return (headers, now) => {
      // The log distinguishes an outdated sender from a wrong one.
      const sha1Only =
        headerOf(headers, HEADER) === undefined && headerOf(headers, 'x-hub-signature') !== undefined;
      return sha1Only ? refused('sha1-only') : verifier(headers, now);
    };
  },
};
