import { base64Bytes, hexBytes } from './encoding.ts';
import { type HmacAlgorithm, hmacLengths } from './hmac-keys.ts';
import { hmacScheme } from './hmac-scheme.ts';
import { headerOf, type Scheme } from './scheme.ts';
import type { Template } from './template.ts';
import { firstOf } from './text-secret.ts';

/** The layout of an HMAC in one header. */
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

/** An HMAC in one header, with configurable layout. */
export function hmac(params: HmacParams): Scheme {
  // Many senders use upper-case digits.
  const hex = (text: string, length: number) => hexBytes(text.toLowerCase(), length);
  return hmacHeader(params, params.encoding === 'hex' ? hex : base64Bytes);
}

/** The same for a sender; `decode` decodes a signature of `length` bytes, and gives undefined when it is malformed. */
export function hmacHeader(
  { header, algorithm, encoding, prefix, timestampHeader, tolerance, template }: HmacParams,
  decode: (text: string, length: number) => Buffer | undefined,
): Scheme {
  return hmacScheme({
    algorithm,
    tolerance: timestampHeader === undefined ? undefined : tolerance,
    template,
    read(headers) {
      const text = headerOf(headers, header);
      if (text === undefined) return 'no-signature';
      if (!text.startsWith(prefix)) return 'malformed-signature';
      const signature = decode(text.slice(prefix.length), hmacLengths[algorithm]);
      if (signature === undefined) return 'malformed-signature';
      return { signatures: [signature], timestamp: timestampHeader && headerOf(headers, timestampHeader) };
    },
    write: (timestamp, signatures) => ({
      ...(timestampHeader !== undefined && { [timestampHeader]: timestamp }),
      [header]: `${prefix}${firstOf(signatures).toString(encoding)}`,
    }),
  });
}
