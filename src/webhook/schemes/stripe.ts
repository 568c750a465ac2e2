import { hexBytes } from './encoding.ts';
import { hmacLengths } from './hmac-keys.ts';
import { hmacScheme, type Presented } from './hmac-scheme.ts';
import { headerOf, type Refusal, type RequestHeaders, type Scheme } from './scheme.ts';
import { timestampAndBody } from './template.ts';

const HEADER = 'stripe-signature';
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
      return { [HEADER]: `t=${timestamp}${items.join('')}` };
    },
  });
}

function read(headers: RequestHeaders): Presented | Refusal {
  const text = headerOf(headers, HEADER);
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
      // With two timestamps it is ambiguous which one was signed.
      if (timestamp !== undefined) return 'malformed-timestamp';
      timestamp = value;
    } else if (key === 'v1') {
      const signature = hexBytes(value, hmacLengths.sha256);
      if (signature !== undefined) signatures.push(signature);
    }
  }
  return signatures.length === 0 ? 'malformed-signature' : { timestamp, signatures };
}
