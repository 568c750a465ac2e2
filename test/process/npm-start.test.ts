import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { linkPackages } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const COPIED = [
  'bin',
  'src',
  'packages',
  'scripts',
  'build/graphiql',
  'build/console',
  'build/docs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];
const DOCUMENTS = ['docs/PACKAGE.md', 'CHANGELOG.md', 'LICENSE'];

/** A checkout of its own, never built, with the packages of this one. */
async function checkout(more: readonly string[] = []) {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(await temporaryFolder());
  for (const name of [...COPIED, ...DOCUMENTS, ...more])
    await cp(join(ROOT, name), join(path, name), { recursive: true });
  await linkPackages(path);
  const rest = cleanup.move();
  const npm = (...args: readonly string[]) =>
    promisify(execFile)('npm', ['--silent', ...args], { cwd: path });
  const built = async () => JSON.parse(await readFile(join(path, 'dist/build/build-info.json'), 'utf8')).time;
  return { path, npm, built, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

const BUILT = /^Portico: \S+dist built in [\d.]+ s\.$/m;

test('npm start and npm run portico build first when a source has changed, and only then', async () => {
  await using copy = await checkout();
  const fresh = await copy.npm('run', 'portico', '--', '--version');
  assert.match(fresh.stderr, BUILT);
  assert.match(fresh.stdout, /^\d+\.\d+\.\d+\n$/, 'nothing but what the command prints');
  const first = await copy.built();

  // Touched, but the same.
  await utimes(join(copy.path, 'src/main.ts'), new Date(), new Date());
  assert.equal((await copy.npm('run', 'portico', '--', '--version')).stderr, '');
  assert.match((await copy.npm('start', '--', '--help')).stdout, /^Usage: portico/);
  assert.equal(await copy.built(), first);

  const main = join(copy.path, 'src/main.ts');
  await writeFile(main, `${await readFile(main, 'utf8')}process.stdout.write('changed\\n');\n`);
  const changed = await copy.npm('start', '--', '--help');
  assert.match(changed.stderr, BUILT);
  assert.match(changed.stdout, /^changed\nUsage: portico/);
  const second = await copy.built();
  assert.notEqual(second, first);

  // A source that is gone is a change too, although nothing is newer.
  await rm(join(copy.path, 'src/graphql/graphiql/page/logo.ts'));
  await assert.rejects(copy.npm('start', '--', '--help'), /logo/);
  assert.equal(await copy.built(), second, 'a build that fails leaves the last one');
});

test('without the development packages npm ci goes on and npm start says what is missing', async () => {
  await using copy = await checkout();
  await rm(join(copy.path, 'node_modules'), { recursive: true });
  const { stderr } = await copy.npm('run', 'prepare');
  assert.match(stderr, /^Portico: not built, because the development packages/);
  await assert.rejects(copy.npm('start'), { code: 1, stderr: /the build needs the development packages/ });
});

test('SIGTERM to npm stops the service behind it, whatever shell is between', async () => {
  // A build that is there is not made again.
  const built = existsSync(join(ROOT, 'dist')) ? ['dist'] : [];
  await using copy = await checkout(built);
  const ports = { PORT: '0', REST_PORT: '0', GRAPHQL_PORT: '0', MANAGEMENT_PORT: '0' };
  const npm = spawn('npm', ['--silent', 'start'], {
    cwd: copy.path,
    env: { ...process.env, ...ports, MANAGEMENT_INCLUDE: 'info', MANAGEMENT_INFO: 'process' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  npm.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  // Closed only once the service has ended too, which holds the other end.
  const closed = once(npm, 'close');
  await waitFor('the service to be ready', () => output.includes('"msg":"ready"'));
  const [, management = ''] = /"management":"([^"]+)"/.exec(output) ?? [];
  const { process: service } = (await (await fetch(`${management}/info`)).json()) as {
    process: { pid: number };
  };
  using cleanup = new DisposableStack();
  cleanup.defer(() => {
    if (existsSync(`/proc/${service.pid}`)) process.kill(service.pid, 'SIGKILL');
  });
  npm.kill('SIGTERM');
  await waitFor('the service to stop', () => output.includes('"msg":"stopped"'));
  await closed;
});
