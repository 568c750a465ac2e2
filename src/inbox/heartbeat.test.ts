import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { test } from 'node:test';
import { openDatabase } from '../database/open-database.ts';
import { Attendance, type AttendanceOptions } from './heartbeat.ts';

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
    process(targets: readonly string[], options: Partial<AttendanceOptions> = {}) {
      const given: [string, number][] = [];
      const attendance = new Attendance({
        inbox,
        targets,
        grace: GRACE,
        onAbandoned: (jobs) => given.push(...jobs),
        onError: assert.fail,
        ...options,
      });
      return { given, look: (at: number) => attendance.look(NOW + at), attendance };
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

test('what nobody runs is dead after the grace time, with what to do in its error', async () => {
  await using store = await opened();
  const [mine, gone] = [await store.append('mine'), await store.append('gone')];
  for (let i = 0; i < 1_100; i++) await store.append('many');
  const { look, given } = store.process(['mine']);
  for (let at = 0; at < GRACE; at += STEP) await look(at);
  assert.equal(await store.status(gone), 'pending');
  await look(GRACE);
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
  assert.match(detail?.jobs[0]?.error ?? '', /for 0\.9 s; put it back and replay/);
});

test('what another process runs is left to it, however long it waits there', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  const [one, other] = [store.process(['mine']), store.process(['theirs'])];
  for (let at = 0; at <= 10 * GRACE; at += STEP) {
    await one.look(at);
    await other.look(at + 1);
  }
  assert.equal(await store.status(theirs), 'pending');
  // It ends, and its handler with it.
  for (let at = 10 * GRACE + STEP; at <= 11 * GRACE + STEP; at += STEP) await one.look(at);
  assert.deepEqual(one.given, [['theirs', 1]]);
});

test('a start after a long time gives nobody up who starts a little later', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  await store.process(['mine', 'theirs']).look(0);
  const night = 100 * GRACE;
  const [one, other] = [store.process(['mine']), store.process(['theirs'])];
  for (let at = night; at < night + GRACE; at += STEP) await one.look(at);
  await other.look(night + GRACE - 1);
  await one.look(night + GRACE);
  assert.equal(await store.status(theirs), 'pending');
});

test('a store that was away, and a process that stood still, begin anew', async () => {
  await using store = await opened();
  const theirs = await store.append('theirs');
  const failures: unknown[] = [];
  let away = false;
  const inbox = {
    ...store.inbox,
    abandon: (...args: Parameters<typeof store.inbox.abandon>) => store.inbox.abandon(...args),
    attend: (...args: Parameters<typeof store.inbox.attend>) =>
      away ? Promise.reject(new Error('away')) : store.inbox.attend(...args),
  };
  const one = store.process(['mine'], { inbox, onError: (error) => failures.push(error) });
  await one.look(0);
  away = true;
  for (let at = STEP; at < GRACE; at += STEP) await one.look(at);
  away = false;
  await one.look(GRACE);
  await one.look(GRACE + STEP);
  assert.equal(failures.length, 2);
  await one.look(10 * GRACE);
  assert.equal(await store.status(theirs), 'pending', 'it stood still');
  await one.look(10 * GRACE - 1);
  for (let at = 10 * GRACE; at < 11 * GRACE - 1; at += STEP) await one.look(at);
  assert.equal(await store.status(theirs), 'pending', 'its clock was put back');
  for (let at = 11 * GRACE - 1; at < 12 * GRACE; at += STEP) await one.look(at);
  assert.equal(await store.status(theirs), 'dead');
});

test('what is replayed, or waits for its next attempt, has the whole time again', async () => {
  await using store = await opened();
  const id = await store.append('gone');
  const one = store.process(['mine']);
  for (let at = 0; at <= GRACE; at += STEP) await one.look(at);
  assert.equal(await store.status(id), 'dead');
  await store.deliveries.replay(id, [{ target: 'gone', orderKey: null }], NOW + GRACE);
  const later = await store.append('gone', NOW + GRACE + STEP);
  for (let at = GRACE + STEP; at < 2 * GRACE; at += STEP) await one.look(at);
  assert.deepEqual([await store.status(id), await store.status(later)], ['pending', 'pending']);
  await one.look(2 * GRACE);
  assert.deepEqual([await store.status(id), await store.status(later)], ['dead', 'pending']);
});

test('without a grace time nothing is given up, and others are told all the same', async () => {
  await using store = await opened();
  const [theirs, gone] = [await store.append('theirs'), await store.append('gone')];
  const [one, other] = [store.process(['mine']), store.process(['theirs'], { grace: 0 })];
  for (let at = 0; at <= 2 * GRACE; at += STEP) {
    await other.look(at);
    if (at < GRACE) continue;
    await one.look(at);
  }
  assert.deepEqual(other.given, []);
  assert.deepEqual([await store.status(theirs), await store.status(gone)], ['pending', 'dead']);
});

test('it tells at once when it starts, and ends when it is stopped', async () => {
  await using store = await opened();
  const { attendance } = store.process(['mine']);
  attendance.start();
  await attendance.stop();
  const gone = await store.append('mine', 0);
  assert.deepEqual(await store.inbox.abandon(NOW, 10, 'x', NOW), [], 'it was seen by the real clock');
  assert.equal(await store.status(gone), 'pending');
});
