import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StoreUnavailableError } from '../../../src/core/errors.ts';
import type { ClaimedJob } from '../../../src/inbox/delivery.ts';
import type { Database } from '../../../src/sql/database.ts';
import { openDatabase } from '../../../src/sql/open.ts';
import { bodyFor, wrongBodies } from '../../support/body-slots.ts';
import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';
import { newDelivery } from '../../support/new-delivery.ts';
import { seededRandom } from '../../support/random.ts';

/** Random steps. */
const STEPS = Number(process.env.PORTICO_SLOT_STEPS ?? 250);
const HOUR = 60 * 60 * 1_000;
const MODES = ['on', 'off', 'on again'];

/** The deliveries that a model expects, by their ids: whether they are settled, and may be removed. */
type Model = Map<string, 'open' | 'held' | 'settled'>;

async function take(claimed: readonly ClaimedJob[], model: Model, running: ClaimedJob[]): Promise<void> {
  for (const job of claimed) {
    const { id, body } = job.delivery;
    assert.equal(String(Buffer.from(body)), String(bodyFor(id)));
    assert.equal(model.get(id), 'open');
    model.set(id, 'held');
    running.push(job);
  }
}

describe('bodies in slots against a model', { skip: withoutPostgres ?? false }, () => {
  const seed = Number(process.env.PORTICO_PROOF_SEED ?? Math.floor(Math.random() * 2 ** 32));

  test(`replicas with the option on and off lose none, seed ${seed}`, async () => {
    const random = seededRandom(seed);
    const url = await postgresDatabase();
    await using stack = new AsyncDisposableStack();
    const replicas: Database[] = [];
    for (const mode of MODES)
      replicas.push(stack.use(await openDatabase(url, { partitions: mode !== 'off' })));
    const model: Model = new Map();
    const running: ClaimedJob[] = [];
    // Ahead of the clock that closes slots, so that removal is beside them, before and behind.
    let now = Date.now();
    const step = async ({ inbox, deliveries }: Database) => {
      now += random.below(2) * random.below(1_000);
      const choice = random.below(20);
      if (choice < 7) {
        const delivery = newDelivery({ receivedAt: now });
        await inbox.append({ ...delivery, body: bodyFor(delivery.id) });
        model.set(delivery.id, 'open');
      } else if (choice < 10)
        await take(await inbox.claim('t', random.below(4), 'owner', HOUR), model, running);
      else if (choice < 13 && running.length > 0) {
        const [job] = running.splice(random.below(running.length), 1);
        assert.ok(job);
        model.set(job.delivery.id, 'settled');
        await inbox.settle(job, 'owner', { kind: 'done' }, now);
      } else if (choice < 15) {
        for (const kind of ['ended', 'excess'] as const)
          await inbox.prune({ kind, before: now - random.below(5_000), maxBytes: 0 });
      } else if (choice < 19) {
        await inbox.prune({ kind: 'bodies', age: random.below(300), bytes: random.pick([null, 50_000]) });
      } else {
        const [id, state] = random.pick([...model, ['', 'open'] as const]);
        if (state !== 'settled' || !(await deliveries.replay(id, [{ target: 't', orderKey: null }], now)))
          return;
        model.set(id, 'open');
      }
    };
    for (let i = 0; i < STEPS; i++) {
      // Two at a time may refuse each other a lock; what they wanted is left to a later step.
      await Promise.all(
        [0, 1].map(() =>
          step(random.pick(replicas)).catch((error) => {
            if (!(error instanceof StoreUnavailableError)) throw error;
          }),
        ),
      );
    }
    const [first] = replicas;
    assert.ok(first);
    const expected = [...model].filter(([, state]) => state !== 'settled').map(([id]) => id);
    assert.deepEqual(await wrongBodies(first, expected), []);
    const stored = (await first.deliveries.list({}, 10_000)).items.map(({ id }) => id);
    assert.deepEqual(await wrongBodies(first, stored), []);
    assert.ok(stored.every((id) => model.has(id)));
  });
});
