import { hexBytes } from './encoding.ts';
import { hmacScheme } from './hmac-header.ts';

export interface SlackParams {
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
}

/** Slack's v0: HMAC-SHA256 over `v0:{timestamp}:{body}`. */
export const slack = hmacScheme(({ tolerance }: SlackParams) => ({
  header: 'x-slack-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  decode: hexBytes,
  prefix: 'v0=',
  timestampHeader: 'x-slack-request-timestamp',
  tolerance,
  template: (timestamp) => ({ before: `v0:${timestamp}:`, after: '' }),
}));
