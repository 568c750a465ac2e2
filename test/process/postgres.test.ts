import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { withoutPostgres } from '../support/databases.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { RunningTime } from '../support/running-time.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Each handled delivery is a line: which one, and by which process. */
const MODULE = `
import { appendFileSync } from 'node:fs';
export default {
  webhook: {
    handlers: {
      async paid({ data }) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        appendFileSync('handled.txt', data.n + ' ' + process.pid + '\\n');
      },
    },
  },
};
`;
const DELIVERIES = 60;

const send = (url: string | undefined, path: string, body: unknown) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    // A connection that has been idle may be closed at the moment in which a busy machine uses it again.
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  });

describe('the service on PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  /** Processes that start together on one empty database, in one folder. */
  async function replicas(count: number, env: Readonly<Record<string, string>> = {}) {
    await using cleanup = new AsyncDisposableStack();
    const folder = cleanup.use(await temporaryFolder()).path;
    await writeFile(join(folder, 'portico.config.ts'), MODULE);
    const DATABASE_URL = await server.createDatabase();
    const processes: readonly PorticoProcess[] = Array.from({ length: count }, () =>
      cleanup.use(startPortico({ cwd: folder, env: { DATABASE_URL, WEBHOOK_LEASE: '1000', ...env } })),
    );
    await Promise.all(processes.map((each) => each.ready()));
    const rest = cleanup.move();
    const handled = async () => {
      const text = await readFile(join(folder, 'handled.txt'), 'utf8').catch(() => '');
      return text.split('\n').slice(0, -1);
    };
    return {
      processes,
      handled,
      databaseUrl: DATABASE_URL,
      [Symbol.asyncDispose]: () => rest.disposeAsync(),
    };
  }

  test('three processes start together and serve one set of users at all doors', async () => {
    await using group = await replicas(3, { GRAPHQL_USERS: 'database' });
    const [a, b, c] = group.processes;
    const created = await send(a?.urls.rest, '/users', { name: 'Ada', email: 'ada@example.com' });
    assert.equal(created.status, 200);
    const expected = '{"status":"success","data":[{"id":1,"name":"Ada","email":"ada@example.com"}]}';
    for (const each of group.processes) {
      assert.equal(await (await fetch(`${each.urls.rest}/users`)).text(), expected);
    }
    const asked = await send(b?.urls.graphql, '/graphql', { query: '{ users { id name email } }' });
    assert.deepEqual(await asked.json(), {
      data: { users: [{ id: '1', name: 'Ada', email: 'ada@example.com' }] },
    });
    const health = await fetch(`${c?.urls.management}/actuator/health`);
    assert.equal(health.status, 200);
    const { components } = (await health.json()) as { components: Record<string, { status: string }> };
    assert.equal(components.db?.status, 'UP');
    for (const each of group.processes) {
      assert.ok(!`${each.stdout}${each.stderr}`.includes('postgres://'), 'the URL is shown nowhere');
      each.child.kill('SIGTERM');
      assert.equal(await each.exited(), 0);
    }
  });

  test('a delivery is handled once, by any of them; what a killed one had in hand others take over', async () => {
    await using group = await replicas(3);
    const [a, b, c] = group.processes;
    const numbers = Array.from({ length: DELIVERIES }, (_, n) => n);
    await Promise.all(
      numbers.map(async (n) => {
        const reply = await send((n % 2 === 0 ? a : b)?.urls.webhook, '/webhook', {
          event: 'paid',
          data: { n },
        });
        assert.equal(reply.status, 200);
      }),
    );
    await waitFor('all to be handled', async () => (await group.handled()).length >= DELIVERIES);
    const handled = (await group.handled()).map((line) => Number(line.split(' ')[0]));
    assert.deepEqual(
      handled.toSorted((x, y) => x - y),
      numbers,
    );

    const sent = numbers.map((n) =>
      send(a?.urls.webhook, '/webhook', { event: 'paid', data: { n: n + 100 } }),
    );
    const acknowledged = (await Promise.all(sent)).filter(({ status }) => status === 200).length;
    assert.equal(acknowledged, DELIVERIES);
    a?.child.kill('SIGKILL');
    await waitFor('the others to take over', async () => {
      const all = new Set((await group.handled()).map((line) => line.split(' ')[0]));
      return numbers.every((n) => all.has(String(n + 100)));
    });
    assert.equal((await fetch(`${c?.urls.rest}/users`)).status, 200);
  });

  test('writes that find the tables locked are refused soon, and all else is answered', async () => {
    await using group = await replicas(1);
    const [{ urls } = assert.fail('no process')] = group.processes;
    const create = async () => {
      using time = new RunningTime();
      const { status, headers } = await send(urls.rest, '/users', { name: 'a', email: 'a@b' });
      return { status, retryAfter: headers.get('retry-after'), took: time.elapsed };
    };
    assert.equal((await create()).status, 200);
    const hand = new pg.Client({ connectionString: group.databaseUrl });
    await hand.connect();
    try {
      await hand.query('BEGIN; LOCK TABLE users, deliveries, jobs IN EXCLUSIVE MODE');
      const writes: ReturnType<typeof create>[] = [];
      const deliveries = Promise.all(
        Array.from({ length: 200 }, () => send(urls.webhook, '/webhook', { event: 'paid', data: { n: 1 } })),
      );
      await waitFor('the writer to be DOWN while many writes wait, and the rest UP', async () => {
        writes.push(...Array.from({ length: 200 }, create));
        const health = await fetch(`${urls.management}/actuator/health`);
        const { components } = (await health.json()) as { components: Record<string, { status: string }> };
        assert.equal(components.db?.status, 'UP');
        return health.status === 503 && components.writer?.status === 'DOWN';
      });
      for (const path of [`${urls.rest}/users/1`, `${urls.management}/livez`]) {
        assert.equal((await fetch(path)).status, 200);
      }
      const refused = await Promise.all(writes);
      for (const { status, retryAfter } of refused) assert.deepEqual([status, retryAfter], [503, '1']);
      const took = refused.map((each) => each.took).toSorted((x, y) => x - y);
      assert.ok((took[took.length >> 1] ?? Infinity) < 4_000, `they took ${took.join(', ')} ms`);
      assert.ok((took.at(-1) ?? Infinity) < 12_000, `one took ${took.at(-1)} ms`);
      for (const { status } of await deliveries) assert.equal(status, 503);
      await hand.query('ROLLBACK');
    } finally {
      await hand.end();
    }
    assert.equal((await create()).status, 200);
    const { data } = (await (await fetch(`${urls.rest}/users`)).json()) as { data: unknown[] };
    assert.equal(data.length, 2, 'what was refused is not stored');
  });

  test('a write whose outcome is unknown says so, and asks nobody to send it again', async () => {
    await using group = await replicas(1);
    const [{ urls, logs } = assert.fail('no process')] = group.processes;
    const hand = new pg.Client({ connectionString: group.databaseUrl });
    await hand.connect();
    try {
      await hand.query('BEGIN; LOCK TABLE users IN EXCLUSIVE MODE');
      const create = send(urls.rest, '/users', { name: 'a', email: 'a@b' });
      await waitFor('the write to wait', async () => {
        const ended = await server.sql(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT%'`,
        );
        return ended.length > 0;
      });
      const reply = await create;
      assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, null]);
      assert.match(await reply.text(), /Failed to create user/);
    } finally {
      await hand.end();
    }
    const entry = await waitFor('the log', () => logs().find(({ msg }) => msg === 'request failed'));
    const { code, message } = entry.err as { readonly code: string; readonly message: string };
    assert.equal(code, 'OUTCOME_UNKNOWN');
    assert.match(message, /outcome is unknown/);
  });

  test('while the server is away the doors say so, and go on by themselves when it is back', async () => {
    await using group = await replicas(1);
    const [{ urls, child } = assert.fail('no process')] = group.processes;
    const ready = async () => (await fetch(`${urls.management}/readyz`)).status;
    const create = () => send(urls.rest, '/users', { name: 'a', email: 'a@b' });
    const deliver = () => send(urls.webhook, '/webhook', { event: 'paid', data: { n: 1 } });
    assert.deepEqual([await ready(), (await create()).status], [200, 200]);
    await server.stop('immediate');
    await waitFor('not to be ready', async () => (await ready()) === 503);
    assert.equal((await create()).status, 503);
    assert.equal((await fetch(`${urls.rest}/users`)).status, 503);
    assert.equal((await deliver()).status, 503);
    assert.equal((await fetch(`${urls.management}/livez`)).status, 200);
    await server.start();
    await waitFor('to be ready again', async () => (await ready()) === 200);
    assert.equal((await create()).status, 200);
    assert.equal((await deliver()).status, 200);
    await waitFor('the delivery to be handled', async () => (await group.handled()).length === 1);
    assert.equal(child.exitCode, null);
  });
});
