import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** What a round is to do, as it comes from the input. */
interface Round {
  readonly url: string;
  /** The number of keys that the jobs share; 0: they are in no order. */
  readonly keys: number;
  readonly jobs: number;
  readonly seconds: number;
}

/** A queue on an empty PostgreSQL database. */
export interface Queue {
  /** Stores one job per key; null: in no order. */
  enqueue(keys: readonly (string | null)[]): Promise<unknown>;
  /** Handles all jobs; calls `onHandled` in each handler. */
  work(onHandled: () => void): unknown;
}

export const BODY = { event: 'payment_received', data: { amount: 100, currency: 'EUR' } };
/** What each queue may run at the same time. */
export const CONCURRENCY = 16;
const CHUNK = 1_000;

/** Stores a backlog, handles it for some seconds, and writes how many jobs it handled per second. */
export async function handleBacklog(open: (url: string, inOrder: boolean) => Promise<Queue>): Promise<void> {
  const { url, keys, jobs, seconds } = JSON.parse(await text(process.stdin)) as Round;
  const queue = await open(url, keys > 0);
  for (let i = 0; i < jobs; i += CHUNK) {
    const keyOf = (_: unknown, j: number) => (keys === 0 ? null : `key-${(i + j) % keys}`);
    await queue.enqueue(Array.from({ length: Math.min(CHUNK, jobs - i) }, keyOf));
  }
  const all = Promise.withResolvers<void>();
  let handled = 0;
  const began = performance.now();
  await queue.work(() => {
    if (++handled === jobs) all.resolve();
  });
  await Promise.race([all.promise, delay(seconds * 1_000)]);
  const perSecond = (handled / (performance.now() - began)) * 1_000;
  process.stdout.write(JSON.stringify({ perSecond }), () => process.exit(0));
}
