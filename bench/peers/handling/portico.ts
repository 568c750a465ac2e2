import { randomUUIDv7 } from 'node:crypto';
import { Dispatcher } from '../../../src/inbox/dispatch/dispatcher.ts';
import { openDatabase } from '../../../src/sql/open.ts';
import { BODY, CONCURRENCY, handleBacklog } from './queue.ts';

const target = 'handler:payment_received';
const body = Buffer.from(JSON.stringify(BODY));

await handleBacklog(async (url) => {
  const { inbox } = await openDatabase(url);
  const append = (orderKey: string | null) =>
    inbox.append({
      id: randomUUIDv7(),
      source: '',
      event: BODY.event,
      dataPointer: '/data',
      contentType: 'application/json',
      body,
      receivedAt: Date.now(),
      dedupKey: null,
      jobs: [{ target, orderKey }],
    });
  return {
    enqueue: (keys) => Promise.all(keys.map(append)),
    work(onHandled) {
      const fail = (error: unknown) => {
        throw new Error('the inbox failed', { cause: error });
      };
      const backoff = { base: 500, cap: 60_000 };
      const limits = { concurrency: CONCURRENCY, timeout: 30_000, maxAttempts: 10, backoff };
      const events = { settled() {}, leaseLost() {}, overdue() {}, storeFailed: fail };
      const run = ({ delivery }: { readonly delivery: { readonly body: Uint8Array } }) => {
        JSON.parse(Buffer.from(delivery.body).toString());
        onHandled();
      };
      new Dispatcher({ inbox, targets: [{ name: target, run, ...limits }], events }).start();
    },
  };
});
