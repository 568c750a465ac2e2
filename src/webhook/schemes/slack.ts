import { hexBytes } from './encoding.ts';
import { hmacHeader } from './hmac.ts';
import type { Scheme } from './scheme.ts';

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
