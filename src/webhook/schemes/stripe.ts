import { hexBytes } from './encoding.ts';
import { hmacKeys, hmacLengths } from './hmac-keys.ts';
import { accepted, headerOf, type Refused, refused, type Scheme } from './scheme.ts';
import { firstOf, textKeys, textSecretProblem } from './text-secret.ts';
import { timestampFault } from './timestamp.ts';

export interface StripeParams {
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
}

const HEADER = 'stripe-signature';
const MAX_ITEMS = 32;

/** Stripe-Signature, `t=…,v1=…`: HMAC-SHA256 over `{timestamp}.{body}`, one signature per secret during a rotation. */
export const stripe: Scheme<StripeParams> = {
  secretProblem: textSecretProblem,

  verifier(secrets, { tolerance }) {
    const keys = hmacKeys('sha256', textKeys(secrets));
    return (headers, now) => {
      const text = headerOf(headers, HEADER);
      if (text === undefined) return refused('no-signature');
      const read = readHeader(text);
      if ('reason' in read) return read;
      const { timestamp, signatures } = read;
      const fault = timestampFault(timestamp, tolerance, now);
      if (fault !== undefined) return refused(fault);
      const before = `${timestamp}.`;
      return (body) =>
        keys.matches(signatures, { before, body, after: '' }) ? accepted : refused('wrong-signature');
    };
  },

  signer(secrets) {
    const keys = hmacKeys('sha256', textKeys(secrets));
    firstOf(secrets);
    return ({ timestamp, body }) => {
      const signatures = keys.sign({ before: `${timestamp}.`, body, after: '' });
      const items = signatures.map((signature) => `,v1=${signature.toString('hex')}`);
      return { [HEADER]: `t=${timestamp}${items.join('')}` };
    };
  },
};

interface StripeHeader {
  readonly timestamp: string | undefined;
  readonly signatures: readonly Buffer[];
}

function readHeader(text: string): StripeHeader | Refused {
  // Node joins repeated headers with a comma and a space, which the format does not contain.
  if (text.includes(' ')) return refused('malformed-signature');
  const items = text.split(',', MAX_ITEMS + 1);
  if (items.length > MAX_ITEMS) return refused('too-many-signatures');
  let timestamp: string | undefined;
  const signatures: Buffer[] = [];
  for (const item of items) {
    const [key, value = ''] = splitOnce(item);
    if (key === 't') {
      // With two timestamps it is ambiguous which one was signed.
      if (timestamp !== undefined) return refused('malformed-timestamp');
      timestamp = value;
    } else if (key === 'v1') {
      const signature = hexBytes(value, hmacLengths.sha256);
      if (signature !== undefined) signatures.push(signature);
    }
  }
  return signatures.length === 0 ? refused('malformed-signature') : { timestamp, signatures };
}

function splitOnce(item: string): readonly [string, string?] {
  const at = item.indexOf('=');
  return at === -1 ? [item] : [item.slice(0, at), item.slice(at + 1)];
}
