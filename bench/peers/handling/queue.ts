import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** The parameters of a round, read from standard input. */
interface Round {
  readonly url: string;
  /** The number of keys that the jobs share; 0: unordered. */
  readonly keys: number;
  readonly jobs: number;
  readonly seconds: number;
}

/** A queue on an empty PostgreSQL database. */
export interface Queue {
  /** Stores one job per key; null: unordered. */
  enqueue(keys: readonly (string | null)[]): Promise<unknown>;
  /** Handles all jobs; each handler calls `onHandled`. */
  work(onHandled: () => void): unknown;
}

export const BODY = { event: 'payment_received', data: { amount: 100, currency: 'EUR' } };
/** Maximum concurrent jobs of each queue. */
export const CONCURRENCY = 16;
const CHUNK = 1_000;

/** Stores a backlog, handles it for some seconds, and writes the number of jobs handled per second. */
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
