import { secretMatcher } from '../access/passwords.ts';
import {
  bodyAlone,
  firstOf,
  hexBytes,
  hmacHeader,
  hmacLengths,
  hmacScheme,
  type Presented,
  textKeys,
  timestampAndBody,
} from './hmac.ts';
import { headerOf, type Refusal, type RequestHeaders, type Scheme } from './schemes.ts';

const GITHUB_HEADER = 'x-hub-signature-256';

const signature = hmacHeader(
  {
    header: GITHUB_HEADER,
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
        headerOf(headers, GITHUB_HEADER) === undefined && headerOf(headers, 'x-hub-signature') !== undefined;
      return sha1Only ? 'sha1-only' : verifier(headers, now);
    };
  },
};

/** Slack's v0: HMAC-SHA256 over `v0:{timestamp}:{body}`. */
export function slack(tolerance: number): Scheme {
  return hmacHeader(
    {
      header: 'x-slack-signature',
      algorithm: 'sha256',
      encoding: 'hex',
      prefix: 'v0=',
      timestampHeader: 'x-slack-request-timestamp',
      tolerance,
      template: (timestamp) => ({ before: `v0:${timestamp}:`, after: '' }),
    },
    hexBytes,
  );
}

const STRIPE_HEADER = 'stripe-signature';
const MAX_ITEMS = 32;

/** Stripe-Signature, `t=…,v1=…`: HMAC-SHA256 over `{timestamp}.{body}`, one signature per secret during a rotation. */
export function stripe(tolerance: number): Scheme {
  return hmacScheme({
    algorithm: 'sha256',
    tolerance,
    template: timestampAndBody.fill,
    read,
    write(timestamp, signatures) {
      const items = signatures.map((signature) => `,v1=${signature.toString('hex')}`);
      return { [STRIPE_HEADER]: `t=${timestamp}${items.join('')}` };
    },
  });
}

function read(headers: RequestHeaders): Presented | Refusal {
  const text = headerOf(headers, STRIPE_HEADER);
  if (text === undefined) return 'no-signature';
  // Node joins repeated headers with a comma and a space, which the format does not contain.
  if (text.includes(' ')) return 'malformed-signature';
  const items = text.split(',', MAX_ITEMS + 1);
  if (items.length > MAX_ITEMS) return 'too-many-signatures';
  let timestamp: string | undefined;
  const signatures: Buffer[] = [];
  for (const item of items) {
    const [, key, value = ''] = /^([^=]*)=?(.*)$/s.exec(item) ?? [];
    if (key === 't') {
      // With two timestamps it would be unclear which one was signed.
      if (timestamp !== undefined) return 'malformed-timestamp';
      timestamp = value;
    } else if (key === 'v1') {
      const signature = hexBytes(value, hmacLengths.sha256);
      if (signature !== undefined) signatures.push(signature);
    }
  }
  return signatures.length === 0 ? 'malformed-signature' : { timestamp, signatures };
}

const anyBody = () => undefined;

/**
 * The shared secret itself in a header (name in lower case). It authenticates the sender but not the content.
 */
export function token(header: string): Scheme {
  return {
    verifier(secrets) {
      textKeys(secrets);
      const matches = secretMatcher(secrets);
      return (headers) => {
        const presented = headerOf(headers, header);
        if (presented === undefined) return 'no-token';
        // Node decodes headers as Latin-1, but most senders encode a non-ASCII secret as UTF-8.
        const matched = matches(presented) || matches(Buffer.from(presented, 'latin1').toString());
        return matched ? anyBody : 'wrong-token';
      };
    },
    signer(secrets) {
      const value = Buffer.from(firstOf(textKeys(secrets))).toString('latin1');
      return () => ({ [header]: value });
    },
  };
}
