import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const urls: Readonly<Record<string, (folder: string) => string | Promise<string>>> = {
  sqlite: (folder) => `sqlite:${join(folder, 'portico.db')}`,
  ...(withoutPostgres === undefined ? { postgres: () => postgresUrl() } : {}),
};

for (const [engine, urlIn] of Object.entries(urls)) {
  describe(`tokens of the database on ${engine}`, () => {
    test('a token is shown once, comes in at once, and is refused by every process once it is revoked', async () => {
      await using folder = await temporaryFolder();
      const env = {
        DATABASE_URL: await urlIn(folder.path),
        INTERFACES: 'rest',
        API_REQUIRED: 'all',
        API_MAX_FAILURES: '0',
      };
      const run = (...args: string[]) => runCommand(['tokens', ...args], { cwd: folder.path, env });
      await using one = await startTestService({ env });
      // An SQLite file has one service.
      await using two = engine === 'postgres' ? await startTestService({ env }) : undefined;
      const services = [one, ...(two === undefined ? [] : [two])];
      for (const each of services) await each.listen();
      const statuses = async (token: string) =>
        Promise.all(
          services.map(async ({ urls }) => {
            const headers = { authorization: `Bearer ${token}` };
            return (await fetch(`${urls.rest}/users/1`, { headers })).status;
          }),
        );
      const all = (status: number) => services.map(() => status);

      const made = await run('create', 'ci', '--scopes', 'users:read,users:write', '--expires', '90d');
      const token = made.stdout.trim();
      assert.match(token, /^portico_[\w-]{43}$/, made.stderr);
      assert.deepEqual(await statuses(token), all(200));
      assert.deepEqual(await statuses(`${token}x`), all(401));
      const again = await run('create', 'ci', '--scopes', 'users:read');
      assert.deepEqual([again.code, again.stdout], [1, '']);

      await one.current.stop();
      const [listed] = JSON.parse((await run('list', '--json')).stdout);
      assert.deepEqual([listed.name, listed.scopes], ['ci', ['users:read', 'users:write']]);
      assert.ok(Date.now() - listed.usedAt < 600_000);
      assert.equal(JSON.stringify(listed).includes(token), false);
      await one.restart();

      assert.equal((await run('revoke', 'ci')).code, 0);
      await waitFor('the refusal', async () => (await statuses(token)).every((status) => status === 401));
      assert.match((await run('list', '--all')).stdout, /^ci .* revoked$/m);
      assert.equal((await run('revoke', 'ci')).code, 1);
    });
  });
}

test('a wrong call says what is wrong', async () => {
  await using folder = await temporaryFolder();
  for (const [args, problem] of [
    [['create'], /needs a name.*\n.*--scopes needs scopes/],
    [['create', 'CI', '--scopes', 'a'], /needs a name/],
    [['create', 'ci', '--scopes', 'a b'], /--scopes needs scopes/],
    [['create', 'ci', '--scopes', 'a', '--expires', '2020-01-01'], /--expires needs days/],
    [['create', 'ci', '--scopes', 'a', '--expires', 'soon'], /--expires needs days/],
    [['revoke'], /Name the token/],
    [['make'], /not one of create, list, revoke/],
  ] as const) {
    const { code, stderr } = await runCommand(['tokens', ...args], { cwd: folder.path });
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, problem);
  }
});

test('a scope that does not exist is refused, and named with those that do', async () => {
  await using folder = await temporaryFolder();
  const create = (scopes: string, env: Readonly<Record<string, string>> = {}) =>
    runCommand(['tokens', 'create', 'ci', '--scopes', scopes], { cwd: folder.path, env });
  const refused = await create('users:read,users:wirte');
  assert.equal(refused.code, 2);
  assert.equal(
    refused.stderr.split('\n')[0],
    'portico: --scopes names users:wirte, which is no scope (there are users:read, users:write; API_SCOPES adds your own); did you mean users:write?',
  );
  const renamed = { API_READ_SCOPE: 'crm.read', API_WRITE_SCOPE: 'crm.write', API_SCOPES: 'orders:read' };
  assert.match((await create('users:read', renamed)).stderr, /there are crm\.read, crm\.write, orders:read;/);
  // What follows is only that there is no database.
  assert.match((await create('crm.read,orders:read', renamed)).stderr, /There is no database/);
});

test('a start refuses tokens and passwords with a scope that does not exist', async () => {
  const tokens = { ci: { secret: 'ci-token-of-the-tests', scopes: ['users:wirte'] } };
  for (const [env, lines] of [
    [
      {},
      [/^ {2}- portico\.config\.json: api\.tokens\.ci\.scopes names users:wirte, .* mean users:write\?$/m],
    ],
    [
      { API_SCOPES: 'users:wirte', API_BASIC: 'usres:read' },
      [/^ {2}- api\.basic names usres:read, .*did you mean users:read\?$/m],
    ],
    // Nothing can be said of scopes while an option that names them is wrong.
    [{ API_READ_SCOPE: 'a b' }, [/^(?!.*which is no scope).*API_READ_SCOPE/s]],
  ] as const) {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ api: { tokens } }));
    const { code, stderr } = await runPortico(['serve'], { cwd: folder.path, env });
    assert.equal(code, 2, stderr);
    for (const line of lines) assert.match(stderr, line);
  }
});
