import { base64Bytes, hexBytes } from './encoding.ts';
import { type HmacParams, hmacScheme } from './hmac-header.ts';

/** An HMAC in one header, with configurable layout. */
export const hmac = hmacScheme((params: HmacParams) => ({
  ...params,
  // Many senders use upper-case digits.
  decode: params.encoding === 'hex' ? (text, length) => hexBytes(text.toLowerCase(), length) : base64Bytes,
}));
