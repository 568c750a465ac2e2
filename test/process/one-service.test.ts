import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { standStill } from '../support/broken-machine.ts';
import { type PorticoProcess, runPortico, startPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** What the guide shows: who has the database, and what to do. */
const [, SHOWN_HOLDER = '', NEXT = ''] =
  /^portico: The database portico\.db cannot be opened: another service runs on it(.*?)\. (Stop .*)$/m.exec(
    readFileSync(join(import.meta.dirname, '../../docs/SCALING.md'), 'utf8'),
  ) ?? [];
const HOLDER = /^: process (\d+) on (\S+), started at (\S+)$/;

/** Words that run a command in namespaces of its own, as a container does. */
const container = (host: string) => [
  ...['unshare', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc', '--uts'],
  ...['sh', '-c', `hostname ${host}; exec "$@"`, 'sh'],
];

function withoutContainer(): string | false {
  const [command = '', ...words] = [...container('test'), 'true'];
  return spawnSync(command, words).status === 0 ? false : 'needs Linux user namespaces (unshare)';
}

/** Starts a service that is refused because of another one; resolves to what it says of that one. */
async function refusal(
  cwd: string,
  url = 'sqlite:portico.db',
  wrapper: readonly string[] = [],
): Promise<string> {
  await using second = startPortico({ cwd, env: { DATABASE_URL: url }, wrapper });
  assert.equal(await second.exited(), 1, second.stdout);
  assert.equal(second.stdout, '');
  const [, holder] =
    /^portico: The database \S+ cannot be opened: another service runs on it(.*?)\. Stop /.exec(
      second.stderr,
    ) ?? [];
  assert.ok(holder !== undefined && second.stderr.endsWith(` ${NEXT}\n`), second.stderr);
  return holder;
}

async function create({ urls }: PorticoProcess): Promise<number> {
  const reply = await fetch(`${urls.rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  return reply.status;
}

test('a second service on a file is refused and told which process has it, however it names the file', async () => {
  await using folder = await temporaryFolder();
  await using first = startPortico({ cwd: folder.path });
  await first.ready();
  assert.match(SHOWN_HOLDER, HOLDER);
  const began = Date.now();
  const file = join(folder.path, 'portico.db');
  await symlink(file, join(folder.path, 'link.db'));
  await mkdir(join(folder.path, 'below'));
  for (const url of [
    'sqlite:portico.db',
    `sqlite:${file}`,
    'sqlite:below/../portico.db',
    'sqlite:link.db',
    `sqlite:file://${file}`,
  ]) {
    const [, pid, host, at = ''] = HOLDER.exec(await refusal(folder.path, url)) ?? [];
    assert.deepEqual([Number(pid), host], [first.child.pid, hostname()], url);
    assert.ok(Math.abs(began - Date.parse(at)) < 60_000, at);
  }
  assert.equal(await create(first), 200);
  first.child.kill('SIGTERM');
  assert.equal(await first.exited(), 0);
  assert.deepEqual((await readdir(folder.path)).sort(), ['below', 'link.db', 'portico.db']);
});

test('a process that was killed leaves no lock, whoever has its number now', async () => {
  await using folder = await temporaryFolder();
  await using first = startPortico({ cwd: folder.path });
  await first.ready();
  first.child.kill('SIGKILL');
  assert.equal(await first.exited(), 'SIGKILL');
  const holder = join(folder.path, 'portico.db-service.json');
  // Number of a process that runs, and a note that a power cut has made of zeros.
  for (const note of [
    JSON.stringify({ pid: process.pid, host: hostname(), startedAt: 0 }),
    '\0'.repeat(80),
  ]) {
    await writeFile(holder, note);
    await using next = startPortico({ cwd: folder.path });
    await next.ready();
    assert.equal(await create(next), 200);
    next.child.kill('SIGKILL');
    await next.exited();
  }
});

test('a stopped process keeps its lock, with a note or without', async () => {
  await using folder = await temporaryFolder();
  await using first = startPortico({ cwd: folder.path });
  await first.ready();
  standStill(first.child.pid ?? 0);
  assert.match(await refusal(folder.path), /^: process \d+ /);
  await writeFile(join(folder.path, 'portico.db-service.json'), '');
  assert.equal(await refusal(folder.path), '');
});

test('of services that start together on a new file one runs', async () => {
  await using folder = await temporaryFolder();
  await using cleanup = new AsyncDisposableStack();
  const all = Array.from({ length: 4 }, () => cleanup.use(startPortico({ cwd: folder.path })));
  const ended = () => all.filter(({ child }) => child.exitCode !== null);
  await waitFor('all but one to end', () => ended().length === all.length - 1);
  for (const each of ended()) assert.match(each.stderr, /another service runs on it/);
  const [last] = all.filter((each) => !ended().includes(each));
  assert.ok(last);
  await last.ready();
  assert.equal(await create(last), 200);
});

test('a service in a container, where it is process 1 too, is refused as well', {
  skip: withoutContainer(),
}, async () => {
  await using folder = await temporaryFolder();
  await using first = startPortico({ cwd: folder.path, wrapper: container('one') });
  await first.ready();
  assert.match(await refusal(folder.path, undefined, container('two')), /^: process 1 on one, /);
  assert.match(await refusal(folder.path), /^: process 1 on one, /);
});

test('the commands go on working beside a service, and a move is refused', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path });
  await portico.ready();
  const env = { DATABASE_URL: `sqlite:${join(folder.path, 'portico.db')}` };
  const run = (...args: string[]) => runPortico(args, { cwd: folder.path, env });
  const url = `${portico.urls.webhook}/webhook`;
  const sent = await run('send', '--url', url, '--event', 'unknown');
  assert.equal(sent.code, 0, sent.stderr);
  const listed = await run('deliveries', 'list', '--json');
  assert.equal(listed.code, 0, listed.stderr);
  const [{ id }] = JSON.parse(listed.stdout).items;
  assert.equal((await run('deliveries', 'show', id)).code, 0);
  assert.equal((await run('migrate', '--check')).code, 0);
  assert.equal((await run('migrate')).code, 0);
  const moved = await run('move', '--to', `sqlite:${join(folder.path, 'target.db')}`);
  assert.equal(moved.code, 1);
  assert.match(moved.stderr, /source is in use by another process/);
});

test('services in memory, and on copies of a file, are none of each other’s business', async () => {
  await using folder = await temporaryFolder();
  const memory = { DATABASE_URL: 'sqlite::memory:' };
  await using one = startPortico({ cwd: folder.path, env: memory });
  await using two = startPortico({ cwd: folder.path, env: memory });
  await Promise.all([one.ready(), two.ready()]);
  assert.deepEqual(await readdir(folder.path), []);
  await using file = startPortico({ cwd: folder.path });
  await file.ready();
  await cp(join(folder.path, 'portico.db'), join(folder.path, 'copy.db'));
  await using copy = startPortico({ cwd: folder.path, env: { DATABASE_URL: 'sqlite:copy.db' } });
  await copy.ready();
});

test('one process: openDatabase opens a file any number of times, for a service once', async () => {
  await using service = await startTestService({ database: 'file' });
  const url = `sqlite:${join(service.folder, 'portico.db')}` as const;
  await using _one = openDatabase(url);
  await using two = openDatabase(url);
  assert.equal(await two.users.create({ name: 'a', email: 'a@b' }), 1);
  assert.throws(() => openDatabase(url, { forService: true }), {
    code: 'DATABASE_OPEN',
    message: new RegExp(`another service runs on it: process ${process.pid} on `),
  });
  await service.restart();
  await service.current.stop();
  await using _next = openDatabase(url, { forService: true });
});
