import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';
import type { Sending } from './service.ts';

/** How many requests a peer sends at a time. */
export const CONCURRENCY = 64;

const agent = new Agent({
  connections: CONCURRENCY,
  pipelining: 1,
  headersTimeout: 15_000,
  bodyTimeout: 5_000,
});
const keys = new Map<string, Buffer>();

function keyOf(secret: string): Buffer {
  const known = keys.get(secret);
  if (known !== undefined) return known;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  if (keys.size >= 20_000) keys.clear();
  keys.set(secret, key);
  return key;
}

/** Signs an event according to Standard Webhooks and posts it. Rejects unless the answer is a 2xx. */
export async function post({ event, url, secret, body }: Sending): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac('sha256', keyOf(secret))
    .update(`${event}.${timestamp}.${body}`)
    .digest('base64');
  const reply = await request(url, {
    dispatcher: agent,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'peer',
      'webhook-id': event,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  });
  await reply.body.dump();
  if (reply.statusCode < 200 || reply.statusCode >= 300)
    throw new Error(`the receiver answered ${reply.statusCode}`);
}
