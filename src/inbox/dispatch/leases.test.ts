import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { openDatabase } from '../../sql/open.ts';
import { Heartbeat } from './leases.ts';

type HeartbeatOptions = ConstructorParameters<typeof Heartbeat>[0];

const NOW = 1_700_000_000_000;
const GRACE = 900;
const STEP = 300;

async function opened() {
  const database = openDatabase('sqlite::memory:');
  const { inbox, deliveries } = database;
  return {
    inbox,
    deliveries,
    async append(target: string, receivedAt = NOW) {
      const id = randomUUIDv7();
      const rest = { source: '', event: 'e', dataPointer: '', contentType: null, body: Buffer.from('1') };
      await inbox.append({ id, ...rest, receivedAt, dedupKey: null, jobs: [{ target, orderKey: null }] });
      return id;
    },
    async status(id: string) {
      return (await deliveries.find(id))?.status;
    },
    process(targets: readonly string[], options: Partial<HeartbeatOptions> = {}) {
      const given: [string, number][] = [];
      const heartbeat = new Heartbeat({
        inbox,
        targets,
        grace: GRACE,
        onExpired: (jobs) => given.push(...jobs),
        onError: assert.fail,
        ...options,
      });
      return { given, beat: (at: number) => heartbeat.beat(NOW + at), heartbeat };
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

test('an orphaned job is dead after the grace period, with advice in its error', async () => {
  await using store = await opened();
  const [mine, gone] = [await store.append('mine'), await store.append('gone')];
  for (let i = 0; i < 1_100; i++) await store.append('many');
  const { beat, given } = store.process(['mine']);
  for (let at = 0; at < GRACE; at += STEP) await beat(at);
  assert.equal(await store.status(gone), 'pending');
  await beat(GRACE);
  assert.deepEqual(
    new Map(given),
    new Map([
      ['gone', 1],
      ['many', 1_100],
    ]),
  );
  assert.equal(await store.status(gone), 'dead');
  assert.equal(await store.status(mine), 'pending');
  const detail = await store.deliveries.find(gone);
  assert.match(detail?.jobs[0]?.error ?? '', /for 0\.9 s; restore it and replay/);
});

test('a job of another live process never expires', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  const [one, other] = [store.process(['mine']), store.process(['theirs'])];
  for (let at = 0; at <= 10 * GRACE; at += STEP) {
    await one.beat(at);
    await other.beat(at + 1);
  }
  assert.equal(await store.status(theirs), 'pending');
  // It ends, and its handler with it.
  for (let at = 10 * GRACE + STEP; at <= 11 * GRACE + STEP; at += STEP) await one.beat(at);
  assert.deepEqual(one.given, [['theirs', 1]]);
});

test('a start after a long pause expires no job of a process that starts a little later', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  await store.process(['mine', 'theirs']).beat(0);
  const night = 100 * GRACE;
  const [one, other] = [store.process(['mine']), store.process(['theirs'])];
  for (let at = night; at < night + GRACE; at += STEP) await one.beat(at);
  await other.beat(night + GRACE - 1);
  await one.beat(night + GRACE);
  assert.equal(await store.status(theirs), 'pending');
});

test('a store that was away, and a process that stood still, begin anew', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  const failures: unknown[] = [];
  let away = false;
  const inbox = {
    ...store.inbox,
    expireOrphans: (...args: Parameters<typeof store.inbox.expireOrphans>) =>
      store.inbox.expireOrphans(...args),
    recordHeartbeat: (...args: Parameters<typeof store.inbox.recordHeartbeat>) =>
      away ? Promise.reject(new Error('away')) : store.inbox.recordHeartbeat(...args),
  };
  const one = store.process(['mine'], { inbox, onError: (error) => failures.push(error) });
  await one.beat(0);
  away = true;
  for (let at = STEP; at < GRACE; at += STEP) await one.beat(at);
  away = false;
  await one.beat(GRACE);
  await one.beat(GRACE + STEP);
  assert.equal(failures.length, 2);
  await one.beat(10 * GRACE);
  assert.equal(await store.status(theirs), 'pending', 'it stood still');
  await one.beat(10 * GRACE - 1);
  for (let at = 10 * GRACE; at < 11 * GRACE - 1; at += STEP) await one.beat(at);
  assert.equal(await store.status(theirs), 'pending', 'its clock was put back');
  for (let at = 11 * GRACE - 1; at < 12 * GRACE; at += STEP) await one.beat(at);
  assert.equal(await store.status(theirs), 'dead');
});

test('a replayed or waiting job has the whole grace period again', async () => {
  await using store = await opened();
  const id = await store.append('gone');
  const one = store.process(['mine']);
  for (let at = 0; at <= GRACE; at += STEP) await one.beat(at);
  assert.equal(await store.status(id), 'dead');
  await store.deliveries.replay(id, [{ target: 'gone', orderKey: null }], NOW + GRACE);
  const later = await store.append('gone', NOW + GRACE + STEP);
  for (let at = GRACE + STEP; at < 2 * GRACE; at += STEP) await one.beat(at);
  assert.deepEqual([await store.status(id), await store.status(later)], ['pending', 'pending']);
  await one.beat(2 * GRACE);
  assert.deepEqual([await store.status(id), await store.status(later)], ['dead', 'pending']);
});

test('without a grace period nothing expires, and heartbeats are still recorded', async () => {
  await using store = await opened();
  const [theirs, gone] = [await store.append('theirs'), await store.append('gone')];
  const [one, other] = [store.process(['mine']), store.process(['theirs'], { grace: 0 })];
  for (let at = 0; at <= 2 * GRACE; at += STEP) {
    await other.beat(at);
    if (at < GRACE) continue;
    await one.beat(at);
  }
  assert.deepEqual(other.given, []);
  assert.deepEqual([await store.status(theirs), await store.status(gone)], ['pending', 'dead']);
});

test('it tells at once when it starts, and ends when it is stopped', async () => {
  await using store = await opened();
  const { heartbeat } = store.process(['mine']);
  heartbeat.task.start();
  await heartbeat.task.stop();
  const gone = await store.append('mine', 0);
  assert.deepEqual(await store.inbox.expireOrphans(NOW, 10, 'x', NOW), [], 'it was seen by the real clock');
  assert.equal(await store.status(gone), 'pending');
});
