import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../../test/support/databases.ts';
import { newDelivery } from '../../test/support/new-delivery.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { READ_SAMPLE } from './batch-queue.ts';
import { databaseMeters, openDatabase } from './open.ts';

/** The measurements of a meter, or of its series with a tag value. */
function read(metrics: Metrics, name: string, tag?: string): Record<string, number> {
  const series = Array.from(metrics.meter(name)?.series() ?? []).find(
    ({ tags }) => tag === undefined || tags.some(({ value }) => value === tag),
  );
  const measured = series?.measure() ?? assert.fail(`no series of ${name}`);
  return Object.fromEntries(measured.map(({ statistic, value }) => [statistic, value]));
}

test('every read is counted by its operation, and one in so many is timed', async () => {
  using metrics = new Metrics();
  await using database = openDatabase('sqlite::memory:', { observer: databaseMeters(metrics) });
  for (let i = 0; i < READ_SAMPLE * 2 + 1; i++) database.users.readJson(i + 1);
  database.users.page('json', 0, 10);
  database.inbox.backlog();
  assert.deepEqual(read(metrics, 'database.reads', 'user.read'), { COUNT: READ_SAMPLE * 2 + 1 });
  assert.deepEqual(read(metrics, 'database.reads', 'user.page'), { COUNT: 1 });
  assert.deepEqual(read(metrics, 'database.reads', 'user.lastId'), { COUNT: 0 });
  assert.deepEqual(read(metrics, 'database.reads', 'inbox.backlog'), { COUNT: 1 });
  const { COUNT, TOTAL_TIME = 0 } = read(metrics, 'database.read.sample', 'user.read');
  assert.equal(COUNT, 3);
  assert.ok(TOTAL_TIME > 0 && TOTAL_TIME < 5, 'in seconds');
});

for (const engine of ['memory', 'file'] as const) {
  test(`writes that come together share a commit, in ${engine}`, async () => {
    using metrics = new Metrics();
    await using folder = await temporaryFolder();
    const url = engine === 'memory' ? 'sqlite::memory:' : `sqlite:${join(folder.path, 'a.db')}`;
    await using database = await openDatabase(url, { observer: databaseMeters(metrics) });
    const create = (name: string) => database.users.create({ name, email: 'a@b' });
    await Promise.all(['a', 'b', 'c'].map(create));
    await create('d');
    const { COUNT, TOTAL_TIME = 0, MAX = 0 } = read(metrics, 'database.commits');
    assert.equal(COUNT, 2);
    assert.ok(TOTAL_TIME > 0 && MAX <= TOTAL_TIME);
    assert.deepEqual(read(metrics, 'database.writes', 'stored'), { COUNT: 4 });
    assert.deepEqual(read(metrics, 'database.writes', 'failed'), { COUNT: 0 });

    const refused = create(null as unknown as string);
    await assert.rejects(Promise.all([refused, create('e')]));
    assert.deepEqual(read(metrics, 'database.writes', 'stored'), { COUNT: 5 });
    assert.deepEqual(read(metrics, 'database.writes', 'failed'), { COUNT: 1 });
    assert.equal(read(metrics, 'database.commits').COUNT, 3);
  });
}

for (const [engine, url, skip] of [
  ['SQLite', async () => 'sqlite::memory:', false],
  ['PostgreSQL', postgresUrl, withoutPostgres ?? false],
] as const) {
  test(`a replay and a discard are counted as writes, in ${engine}`, { skip }, async () => {
    using metrics = new Metrics();
    await using database = await openDatabase(await url(), { observer: databaseMeters(metrics) });
    const delivery = newDelivery();
    await database.inbox.append(delivery);
    const { COUNT: before = 0 } = read(metrics, 'database.writes', 'stored');
    assert.equal(await database.deliveries.discard(delivery.id, 1), true);
    assert.equal(await database.deliveries.replay(delivery.id, delivery.jobs, 2), true);
    assert.deepEqual(read(metrics, 'database.writes', 'stored'), { COUNT: before + 2 });
  });
}
