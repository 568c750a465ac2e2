import { writeSync } from 'node:fs';
import { openDatabase } from '../../src/sql/open.ts';
import { bodyFor } from './body-slots.ts';
import { newDelivery } from './new-delivery.ts';

// Stores, handles and removes deliveries, and empties slots, until it is killed: node slot-worker.ts <url> <on or off>.
// It writes "stored <id>" after an acknowledgement, "ending <id>" before an outcome, and "wrong <id>" for a wrong body.
const [url = '', mode] = process.argv.slice(2);
const HOUR = 60 * 60 * 1_000;
const OPEN_EVERY = 7;
const say = (line: string) => writeSync(1, `${line}\n`);

await using database = await openDatabase(url, { partitions: mode === 'on' });
const { inbox } = database;
const owner = `owner ${process.pid}`;
const forever = async (work: () => Promise<unknown>) => {
  for (;;) {
    await work().catch((error: unknown) => say(`failed ${error}`));
    await new Promise(setImmediate);
  }
};
let count = 0;
await Promise.all([
  forever(async () => {
    const target = ++count % OPEN_EVERY === 0 ? 'nobody' : 't';
    const { id, ...rest } = newDelivery({ receivedAt: Date.now(), jobs: [{ target, orderKey: null }] });
    await inbox.append({ ...rest, id, body: bodyFor(id) });
    say(`stored ${id}`);
  }),
  forever(async () => {
    for (const job of await inbox.claim('t', 8, owner, HOUR)) {
      const { id, body } = job.delivery;
      if (!bodyFor(id).equals(body)) say(`wrong ${id}`);
      say(`ending ${id}`);
      await inbox.settle(job, owner, { kind: 'done' });
    }
  }),
  forever(async () => {
    await inbox.prune({ kind: 'excess', before: Date.now(), maxBytes: 0 });
    await inbox.prune({ kind: 'bodies', age: 30, bytes: null });
  }),
]);
