import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { withoutPostgres } from '../support/databases.ts';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { bearer, moduleWith } from './support/tokens.ts';

interface Events {
  readonly events: readonly { readonly type: string; readonly data: Readonly<Record<string, unknown>> }[];
}

/** What a token's requests have left in a process. */
const left = ({ headers }: Response) => Number(/;r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);

test('two processes on one database share tokens and audit events, and each has rates of its own', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using server = await sharedPostgres();
  await using folder = await temporaryFolder();
  const env = {
    DATABASE_URL: await server.createDatabase(),
    INTERFACES: 'rest,management',
    MANAGEMENT_INCLUDE: 'auditevents',
    API_REQUIRED: 'all',
    API_RATE: '1/h',
    API_BURST: '10000',
    API_MAX_FAILURES: '5',
  };
  const module = moduleWith();
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  await using one = await startTestService({ env, module });
  await one.listen();
  await using two = startPortico({ cwd: folder.path, env });
  await two.ready();
  const both = [one, two];
  const tokens = async (...args: string[]) => {
    const run = await runPortico(['tokens', ...args], { cwd: folder.path, env });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  const ask = ({ urls }: { readonly urls: Readonly<Record<string, string>> }, authorization: string) =>
    fetch(`${urls.rest}/users/1`, { headers: { authorization } });
  const eventsOf = async ({ urls }: { readonly urls: Readonly<Record<string, string>> }) =>
    ((await (await fetch(`${urls.management}/actuator/auditevents`)).json()) as Events).events;

  const token = await tokens('create', 'ci', '--scopes', 'users:read');
  for (const each of both) assert.equal((await ask(each, `Bearer ${token}`)).status, 200);

  const refused: (string | null)[] = [];
  for (const each of both) {
    const reply = await ask(each, 'Bearer wrong');
    assert.equal(reply.status, 401);
    refused.push(reply.headers.get('x-request-id'));
  }
  for (const each of both) {
    const events = await waitFor('the events of both', async () => {
      const shown = await eventsOf(each);
      const ids = shown.map(({ data }) => data.request);
      return refused.every((id) => ids.includes(id)) && shown;
    });
    assert.ok(events.some(({ type, data }) => type === 'TOKEN_CREATED' && data.token === 'ci'));
  }

  const [first, second] = [await ask(one, bearer('reader')), await ask(one, bearer('reader'))];
  assert.deepEqual([left(first), left(second)], [9_999, 9_998]);
  assert.equal(left(await ask(two, bearer('reader'))), 9_999, 'the other has not seen them');

  await tokens('revoke', 'ci');
  for (const each of both) {
    await waitFor('the refusal', async () => (await ask(each, `Bearer ${token}`)).status === 401);
  }

  await waitFor('the limit on failures', async () => (await ask(one, 'Bearer wrong')).status === 429);
  assert.equal((await ask(two, 'Bearer wrong')).status, 401, 'the other has its own');
});
