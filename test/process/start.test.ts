import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { MAIN, type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

test('the start prints the URL of each door and one curl that works; standard output is log lines only', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path });
  await portico.ready();
  for (const door of ['graphql', 'rest', 'management', 'webhook']) {
    assert.ok(portico.stderr.includes(portico.urls[door] ?? '?'), door);
  }
  const [, command = ''] = /Try:\s+(curl .*)/.exec(portico.stderr) ?? [];
  const { stdout } = await promisify(execFile)('sh', ['-c', `${command} -s`]);
  assert.equal(stdout, '{"status":"success","data":[]}');
  assert.ok(portico.logs().length > 0, 'every line is JSON');
  assert.deepEqual(
    (await readdir(folder.path)).filter((name) => name.endsWith('.db')),
    ['portico.db'],
  );
});

test('a port in use: one clear line, exit code 1, nothing half started', async () => {
  await using folder = await temporaryFolder();
  await using taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  await using portico = startPortico({ cwd: folder.path, env: { REST_PORT: String(port) } });
  assert.equal(await portico.exited(), 1);
  assert.equal(
    portico.stderr,
    `portico: The rest door cannot listen on 127.0.0.1:${port}: the port is in use. ` +
      'Stop the other program, or choose another port with --rest-port or REST_PORT.\n',
  );
  assert.ok(!portico.logs().some(({ msg }) => msg === 'ready'));
});

for (const [what, make] of Object.entries({
  'is a folder': (path: string) => mkdir(path),
  'is no database': (path: string) => writeFile(path, 'this is not a database, however long the text may be'),
})) {
  test(`a database that ${what}: one clear line, exit code 1`, async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'bad.db');
    await make(file);
    await using portico = startPortico({ cwd: folder.path, env: { DATABASE_URL: `sqlite:${file}` } });
    assert.equal(await portico.exited(), 1);
    assert.match(portico.stderr, /^portico: The database \S+bad\.db cannot be opened: [^\n]+\n$/);
  });
}

test('a database of a newer version is refused', async () => {
  await using folder = await temporaryFolder();
  const first = startPortico({ cwd: folder.path });
  await first.ready();
  first.child.kill('SIGTERM');
  assert.equal(await first.exited(), 0);
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(join(folder.path, 'portico.db'));
  db.exec(`INSERT INTO migrations VALUES ('999-future.sql', 0)`);
  db.close();
  await using portico = startPortico({ cwd: folder.path });
  assert.equal(await portico.exited(), 1);
  assert.match(portico.stderr, /newer version \(999-future\.sql\)/);
});

test('a wrong configuration: every problem at once, exit code 2, nothing started', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    args: ['serve', '--rest-prot', '1'],
    env: { GRAPHQL_PORT: 'many', LOG_LEVEL: 'loud', MANAGEMENT_INCLUDE: 'helth,*' },
  });
  assert.equal(await portico.exited(), 2);
  assert.match(portico.stderr, /--rest-port/);
  assert.match(portico.stderr, /GRAPHQL_PORT/);
  assert.match(portico.stderr, /LOG_LEVEL/);
  assert.match(portico.stderr, /management\.include names helth, .* did you mean health\?/);
  assert.equal(portico.stdout, '');
  assert.deepEqual(await readdir(folder.path), []);
});

test('--help and --version answer at once', async () => {
  await using folder = await temporaryFolder();
  for (const [args, shown] of [
    [['--help'], /^ {2}serve {2,}Opens the doors/m],
    [['serve', '--help'], /--webhook-secret.*WEBHOOK_SECRET/],
  ] as const) {
    await using help = startPortico({ cwd: folder.path, args });
    assert.equal(await help.exited(), 0);
    assert.match(help.stdout, shown);
  }
  for (const flag of ['--version', '-v']) {
    await using version = startPortico({ cwd: folder.path, args: [flag] });
    assert.equal(await version.exited(), 0);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
  }
});

test('a wrong call is headed as one, with every option that may be meant', async () => {
  await using folder = await temporaryFolder();
  const call = async (...args: readonly string[]) => {
    await using portico = startPortico({ cwd: folder.path, args });
    assert.equal(await portico.exited(), 2);
    return portico.stderr;
  };
  assert.equal(
    await call('--port', '80'),
    'portico: The command line is not valid:\n' +
      '  - "--port" is not an option; did you mean --graphql-port, --rest-port, --management-port or --webhook-port?\n',
  );
  assert.match(await call('serve', 'deliveries'), /^portico: The command line is not valid:\n/);
  assert.match(await call('--rest-port', 'many'), /^portico: The command line is not valid:\n/);
});

test('an old Node gets one sentence', async () => {
  await using folder = await temporaryFolder();
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(old)}`];
  const { code, stderr } = await promisify(execFile)(process.execPath, [...preload, MAIN], {
    cwd: folder.path,
  }).catch((error) => error);
  assert.equal(code, 1);
  assert.match(stderr, /^portico: Portico needs Node 24 or newer, and this is Node 20\.20\.2 \(.*\)\.\n$/);
});

test('an unsecured door that listens elsewhere than on loopback is warned of', async () => {
  await using folder = await temporaryFolder();
  const api = 'set API_REQUIRED';
  {
    await using portico = startPortico({ cwd: folder.path, env: { HOST: '0.0.0.0' } });
    await portico.ready();
    assert.deepEqual(portico.logs().find(({ level }) => level === 'warn')?.secure, {
      graphql: api,
      rest: api,
      management: 'set MANAGEMENT_USER and MANAGEMENT_PASSWORD',
      webhook: 'set WEBHOOK_SECRET',
    });
  }
  const env = { HOST: '0.0.0.0', WEBHOOK_SECRET: 'a', MANAGEMENT_USER: 'u', MANAGEMENT_PASSWORD: 'p' };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  const warning = portico.logs().find(({ level }) => level === 'warn');
  assert.deepEqual(warning?.doors, ['graphql', 'rest']);
  assert.deepEqual(warning?.secure, { graphql: api, rest: api });
});

test('what the console does not show is said at the start, with what opens it', async () => {
  await using folder = await temporaryFolder();
  const closed =
    /The console shows no users and deliveries: .* Set MANAGEMENT_USER and MANAGEMENT_PASSWORD to open them/;
  const entryOf = ({ logs }: PorticoProcess) =>
    logs().find(({ msg }) => msg === 'users and deliveries closed in the console');
  {
    await using portico = startPortico({ cwd: folder.path, env: { WEBHOOK_SECRET: 'sesame' } });
    await portico.ready();
    assert.match(portico.stderr, closed);
    const entry = await waitFor('the entry', () => entryOf(portico));
    assert.equal(entry.open, 'set MANAGEMENT_USER and MANAGEMENT_PASSWORD');
  }
  for (const env of [{}, { WEBHOOK_SECRET: 'sesame', MANAGEMENT_EXCLUDE: 'console' }]) {
    await using portico = startPortico({ cwd: folder.path, env });
    await portico.ready();
    assert.doesNotMatch(portico.stderr, closed);
    portico.child.kill('SIGTERM');
    await portico.exited();
    assert.equal(entryOf(portico), undefined);
  }
});
