import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { seriesNames } from '../../scripts/ops/meter-table.ts';
import { listMeters } from '../../scripts/ops/meters.ts';
import { dumpableServer, startPostgres } from '../support/postgres.ts';
import { prometheusMissing } from '../support/prometheus.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { runShown, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const BACKUPS = shownCommands('docs/BACKUP.md', /^portico backup/);
const DRILL = shownCommands('docs/BACKUP.md', /^DATABASE_URL=sqlite:drill/);
const RESTORE = shownCommand('docs/BACKUP.md', /^portico restore backups/);
const RESTORE_FROM_LITESTREAM = shownCommand('docs/BACKUP.md', /^portico restore restored/);
const DUMP = shownCommand('docs/BACKUP.md', /^pg_dump/);
const RESTORE_DUMP = shownCommand('docs/BACKUP.md', /^pg_restore/);
const GUIDE = readFile(join(import.meta.dirname, '../../docs/BACKUP.md'), 'utf8');

async function create({ urls }: TestService): Promise<void> {
  const body = '{"name":"Ada","email":"ada@example.org"}';
  assert.equal((await fetch(`${urls.rest}/users`, { method: 'POST', body })).status, 200);
}

async function count({ urls }: TestService): Promise<number> {
  return ((await (await fetch(`${urls.rest}/users`)).json()) as { data: readonly unknown[] }).data.length;
}

test('what the guide backs up while the service runs is what it restores once that has stopped', async () => {
  await using service = await startTestService({ database: 'file' });
  const { folder } = service;
  await service.listen();
  await create(service);
  const mounted = join(folder, 'mnt');
  await mkdir(mounted);
  const env = { DATABASE_URL: service.databaseUrl };
  for (const command of BACKUPS) {
    const made = await runShown(command, { cwd: folder, env, names: { '/mnt/backups': mounted } });
    assert.equal(made.code, 0, made.stderr);
    await create(service);
  }
  assert.deepEqual(await readdir(mounted), ['now.db']);
  const [name = ''] = await readdir(join(folder, 'backups'));
  const [, shown = ''] = /^portico restore backups\/(\S+)$/.exec(RESTORE.command) ?? [];
  assert.equal(name.replaceAll(/\d/g, '0'), shown.replaceAll(/\d/g, '0'));
  assert.ok(BACKUPS[0]?.command.endsWith(`# to backups/${shown}`));

  assert.equal(DRILL.length, 2);
  for (const command of DRILL) {
    const tried = await runShown(command, { cwd: folder });
    assert.equal(tried.code, 0, tried.stderr);
  }

  const place = { cwd: folder, env, names: { [shown]: name } };
  assert.notEqual((await runShown(RESTORE, place)).code, 0, 'the service runs');
  await service.current.stop();
  // What Litestream restores is such a file too.
  await copyFile(join(mounted, 'now.db'), join(folder, 'restored.db'));
  for (const [command, users] of [
    [RESTORE, 1],
    [RESTORE_FROM_LITESTREAM, 2],
  ] as const) {
    const restored = await runShown(command, place);
    assert.equal(restored.code, 0, restored.stderr);
    await service.restart();
    assert.equal(await count(service), users);
    await service.current.stop();
  }
});

const server = dumpableServer();
const missing =
  server === undefined && 'needs a PostgreSQL server that pg_dump came with (Debian package postgresql)';

test('what pg_dump took is there after pg_restore into an empty database', { skip: missing }, async () => {
  await using folder = await temporaryFolder();
  await using postgres = await startPostgres({ ...(server && { binaries: server }) });
  const PATH = `${dirname(server?.postgres ?? '')}:${process.env.PATH}`;
  {
    await using service = await startTestService({ env: { DATABASE_URL: await postgres.createDatabase() } });
    await service.listen();
    await create(service);
    await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"x"}' });
    const env = { PATH, DATABASE_URL: service.databaseUrl };
    const dumped = await runShown(DUMP, { cwd: folder.path, env });
    assert.equal(dumped.code, 0, dumped.stderr);
    await create(service);
    // Where something is, nothing changes.
    assert.notEqual((await runShown(RESTORE_DUMP, { cwd: folder.path, env })).code, 0);
    assert.equal(await count(service), 2);
  }
  const DATABASE_URL = await postgres.createDatabase();
  const restored = await runShown(RESTORE_DUMP, { cwd: folder.path, env: { PATH, DATABASE_URL } });
  assert.equal(restored.code, 0, restored.stderr);
  await using service = await startTestService({ env: { DATABASE_URL, DATABASE_MIGRATE: 'false' } });
  await service.listen();
  assert.equal(await count(service), 1);
  assert.deepEqual(await postgres.sql('SELECT count(*) FROM deliveries', DATABASE_URL), [['1']]);
});

test('portico backup and portico restore print what the guide shows for PostgreSQL', async () => {
  await using folder = await temporaryFolder();
  const place = { cwd: folder.path, env: { DATABASE_URL: 'postgres://u:secret@h/d' } };
  const file = /\S+\.(?:dump|db)/;
  for (const [command, shown] of [
    [BACKUPS[0], DUMP],
    [RESTORE, RESTORE_DUMP],
  ] as const) {
    assert.ok(command !== undefined);
    const { code, stderr } = await runShown(command, place);
    assert.equal(code, 1);
    assert.ok(stderr.replace(file, '').includes(shown.command.replace(file, '')), stderr);
  }
});

test('Prometheus can ask for the age of a backup as the guide does', {
  skip: prometheusMissing(),
}, async () => {
  const [, query = ''] = /\n```\n(.*)\n```\n/.exec(await GUIDE) ?? [];
  const [name = ''] = query.split(' ');
  assert.ok((await listMeters()).flatMap(seriesNames).includes(name), name);
  await using folder = await temporaryFolder();
  const rules = { groups: [{ name: 'backup', rules: [{ alert: 'TooOld', expr: query }] }] };
  // JSON is YAML.
  await writeFile(join(folder.path, 'rules.yml'), JSON.stringify(rules));
  await promisify(execFile)('promtool', ['check', 'rules', join(folder.path, 'rules.yml')]);
});
