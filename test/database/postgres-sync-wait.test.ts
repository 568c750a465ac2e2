import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Health {
  readonly status: string;
  readonly components: Readonly<Record<string, { readonly status: string }>>;
}

test('while commits wait for a replica that is not there, reads go on, readiness stays, and health and a meter tell', {
  skip: withoutPostgres ?? false,
}, async () => {
  await using server = await startPostgres();
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    env: {
      DATABASE_URL: await server.createDatabase(),
      INTERFACES: 'rest,management',
      MANAGEMENT_INCLUDE: 'health,metrics',
    },
  });
  await portico.ready();
  const { rest, management } = portico.urls;
  const create = () => fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  const get = async (path: string) => {
    const reply = await fetch(`${management}${path}`);
    return { code: reply.status, body: (await reply.json()) as unknown };
  };
  const health = async () => {
    const { code, body } = await get('/actuator/health');
    return { code, ...(body as Health) };
  };
  const age = async () => {
    const { body } = await get('/actuator/metrics/database.write.age');
    return Number(Object(body).measurements[0].value);
  };
  const standbys = async (names: string) => {
    await server.sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await server.sql('SELECT pg_reload_conf()');
  };
  assert.equal((await create()).status, 200);
  await waitFor('health', async () => (await health()).code === 200);
  await waitFor('no write to be waiting', async () => (await age()) === 0);

  await standbys('missing');
  // The server applies it within moments: until then writes are acknowledged.
  const refused = async () => {
    const reply = await create();
    return reply.status !== 200 && reply;
  };
  const look = async () => {
    await waitFor('the age of a write', async () => (await age()) > 2);
    const down = await waitFor('the writer to be DOWN', async () => {
      const answer = await health();
      return answer.components.writer?.status === 'DOWN' && answer;
    });
    assert.equal(down.code, 503);
    assert.equal(down.components.db?.status, 'UP');
    assert.equal((await get('/readyz')).code, 200);
    assert.equal((await fetch(`${rest}/users/1`)).status, 200);
  };
  const [told] = await Promise.all([waitFor('a write of unknown outcome', refused), look()]);
  assert.equal(told.status, 503);
  assert.equal(told.headers.get('x-error-code'), 'OUTCOME_UNKNOWN');

  await standbys('');
  await waitFor('health to be UP again', async () => (await health()).code === 200);
  await waitFor('no write to be waiting', async () => (await age()) === 0);
  assert.equal((await create()).status, 200);
});
