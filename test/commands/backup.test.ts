import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { send } from '../proof/kill/client.ts';
import { checkEvents, readRows } from '../proof/rows/content.ts';
import { relations } from '../proof/rows/declaration.ts';
import { type RowGroup, RowHistory } from '../proof/rows/history.ts';
import { RowWriter } from '../proof/rows/writer.ts';
import { startPortico } from '../support/portico-process.ts';
import { seededRandom } from '../support/random.ts';
import { runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };

async function create(url: string | undefined, name: string): Promise<void> {
  const body = JSON.stringify({ name, email: `${name}@example.org` });
  const reply = await fetch(`${url}/users`, { method: 'POST', headers: JSON_HEADERS, body });
  assert.equal(reply.status, 200, await reply.text());
}

async function names(url: string | undefined): Promise<readonly string[]> {
  const { data } = (await (await fetch(`${url}/users`)).json()) as { data: readonly { name: string }[] };
  return data.map(({ name }) => name);
}

test('a backup of a running service is restored in place of a later database, which is kept', async () => {
  await using place = await temporaryFolder();
  const run = (...args: readonly string[]) => runCommand(args, { cwd: place.path });
  {
    await using portico = startPortico({ cwd: place.path, env: { BACKUP_EVERY: '1d' } });
    await portico.ready();
    await waitFor('the scheduled one', () => portico.logs().find(({ msg }) => msg === 'backup completed'));
    assert.equal(readdirSync(join(place.path, 'backups')).length, 1);
    const health = await (await fetch(`${portico.urls.management}/actuator/health/backup`)).json();
    assert.equal((health as { status: string }).status, 'UP');

    await create(portico.urls.rest, 'ada');
    const backup = await run('backup', 'one.db', '--json');
    assert.equal(backup.code, 0, backup.stderr);
    const { path, bytes, rows } = JSON.parse(backup.stdout);
    assert.deepEqual([path, bytes, rows.users], ['one.db', statSync(join(place.path, 'one.db')).size, 1]);
    await create(portico.urls.rest, 'bob');

    assert.match((await run('backup', 'one.db')).stderr, /The file one\.db already exists/);
    assert.match((await run('backup', 'none/one.db')).stderr, /the folder .*none does not exist/);
    const refused = await run('restore', 'one.db', '--yes');
    assert.match(refused.stderr, /A service runs on .*portico\.db: process \d+ on .*Stop it before/);
    assert.equal(refused.code, 1);
    assert.deepEqual(await names(portico.urls.rest), ['ada', 'bob']);
  }
  const restored = await run('restore', 'one.db', '--json');
  assert.equal(restored.code, 0, restored.stderr);
  const { kept } = JSON.parse(restored.stdout);
  using before = new DatabaseSync(kept, { readOnly: true, timeout: 5_000 });
  assert.equal(before.prepare('SELECT count(*) AS count FROM users').get()?.count, 2);
  await using portico = startPortico({ cwd: place.path });
  await portico.ready();
  assert.deepEqual(await names(portico.urls.rest), ['ada']);
  await create(portico.urls.rest, 'cy');
});

test('a backup has the rows of relations and their changes as they were at one moment', async () => {
  await using place = await temporaryFolder();
  writeFileSync(join(place.path, 'portico.config.json'), JSON.stringify({ relations }));
  const run = (...args: readonly string[]) => runCommand(args, { cwd: place.path });
  const history = new RowHistory();
  const random = seededRandom(1);
  const agent = new Agent({ keepAlive: true });
  const writerAt = (url: string | undefined, name: string) =>
    new RowWriter(history, random, name, (method, path, body, headers) =>
      send(agent, method, `${url}${path}`, body, headers),
    );
  const known = new Set<RowGroup>();
  {
    await using portico = startPortico({ cwd: place.path });
    await portico.ready();
    let isWriting = true;
    const writing = ['a', 'b', 'c'].map(async (name) => {
      const writer = writerAt(portico.urls.rest, name);
      while (isWriting) assert.ok(await writer.write());
    });
    await waitFor('writes', () => history.acknowledged > 150);
    for (const group of history.groups) if (group.acknowledgedBy !== undefined) known.add(group);
    const backup = await run('backup', 'one.db', '--json');
    assert.equal(backup.code, 0, backup.stderr);
    isWriting = false;
    await Promise.all(writing);
  }
  assert.equal((await run('restore', 'one.db', '--json')).code, 0);
  const check = (file: string, ahead: number) => {
    using db = new DatabaseSync(join(place.path, file), { readOnly: true, timeout: 5_000 });
    history.check(readRows(db), { isKnown: (group) => known.has(group), ahead });
  };
  for (const file of ['one.db', 'portico.db']) check(file, Number.POSITIVE_INFINITY);
  assert.throws(
    () => {
      for (const group of history.groups) known.add(group);
      check('portico.db', 0);
    },
    /lost: /,
    'writes went on during the backup',
  );

  // What is written then goes on from there: numbers, positions, constraints.
  await using portico = startPortico({ cwd: place.path });
  await portico.ready();
  const rows = new RowHistory();
  const writer = new RowWriter(rows, random, 'later', (method, path, body, headers) =>
    send(agent, method, `${portico.urls.rest}${path}`, body, headers),
  );
  for (let i = 0; i < 40; i++) assert.ok(await writer.write());
  agent.destroy();
  using db = new DatabaseSync(join(place.path, 'portico.db'), { readOnly: true, timeout: 5_000 });
  const content = readRows(db);
  assert.ok(content !== undefined);
  checkEvents(content);
  const later = ({ name = '', reader = '' }) => (name + reader).startsWith('later-');
  rows.check({ authors: content.authors.filter(later), loans: content.loans.filter(later), events: [] });
});

test('a restore refuses what is no sound backup, and changes nothing then', async () => {
  await using place = await temporaryFolder();
  const run = (...args: readonly string[]) => runCommand(args, { cwd: place.path });
  const file = (name: string) => join(place.path, name);
  assert.match((await run('backup')).stderr, /There is no database .*portico\.db yet/);
  assert.equal((await run('migrate')).code, 0);
  assert.equal((await run('backup', 'good.db')).code, 0);
  const before = readFileSync(file('portico.db'));

  writeFileSync(file('text.db'), 'no database, '.repeat(100));
  using other = new DatabaseSync(file('other.db'));
  other.exec('CREATE TABLE t(x)');
  const newer = readFileSync(file('good.db'));
  writeFileSync(file('newer.db'), newer);
  using later = new DatabaseSync(file('newer.db'));
  later.exec(`INSERT INTO migrations VALUES ('999-later.sql', 0)`);
  writeFileSync(file('cut.db'), newer.subarray(0, newer.length / 2));
  const refusals = {
    none: /does not exist. Name a backup/,
    text: /not an SQLite database/,
    other: /not a Portico database/,
  };
  for (const [name, reason] of Object.entries({
    ...refusals,
    newer: /newer version \(999-later\.sql\)/,
    cut: /damaged/,
  })) {
    const { code, stderr } = await run('restore', `${name}.db`, '--yes');
    assert.match(stderr, reason);
    assert.equal(code, 1);
  }
  assert.deepEqual(readFileSync(file('portico.db')), before);
  assert.deepEqual(
    readdirSync(place.path).filter((name) => name.includes('restor')),
    [],
  );

  // A damaged database is what a backup is for; where there is none, it makes one.
  writeFileSync(file('portico.db'), 'x'.repeat(8_192));
  const { kept } = JSON.parse((await run('restore', 'good.db', '--yes', '--json')).stdout);
  assert.equal(readFileSync(kept, 'utf8'), 'x'.repeat(8_192));
  const fresh = await run('restore', 'good.db', '--database-url', 'sqlite:fresh.db', '--json');
  assert.equal(JSON.parse(fresh.stdout).kept, null);
  assert.ok(existsSync(file('fresh.db')) && !existsSync(file('fresh.db-service')));
  assert.equal((await run('migrate', '--check', '--database-url', 'sqlite:fresh.db')).code, 0);
});

test('on PostgreSQL the commands say what to run, without the password', async () => {
  await using place = await temporaryFolder();
  const env = { DATABASE_URL: 'postgres://u:secret@h/d' };
  const backup = await runCommand(['backup'], { cwd: place.path, env });
  assert.match(
    backup.stderr,
    /pg_dump --format=custom --no-owner --file=\S+\.dump --dbname="\$DATABASE_URL"/,
  );
  const restore = await runCommand(['restore', 'x.dump'], { cwd: place.path, env });
  assert.match(
    restore.stderr,
    /pg_restore --single-transaction --no-owner --dbname="\$DATABASE_URL" x\.dump/,
  );
  assert.doesNotMatch(backup.stderr + restore.stderr, /secret/);
  assert.deepEqual([backup.code, restore.code], [1, 1]);
});
