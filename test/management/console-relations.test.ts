import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const OPS = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: 'password' };
const MODULE = `
export default {
  relations: {
    teams: { columns: { name: { type: 'text', max: 40 } } },
    notes: {
      columns: {
        title: { type: 'text', max: 80, unique: true },
        owner: { type: 'text', max: 40, set: { caller: '/sub' } },
        price: { type: 'decimal', precision: 6, scale: 2, default: '1.50' },
        kind: { type: 'enum', values: ['a', 'b'], nullable: true },
        team: { type: 'reference', to: 'teams', nullable: true },
        writer: { type: 'reference', to: 'users', nullable: true },
      },
      rules: {
        read: [{ scope: 'staff' }, { where: { owner: { caller: '/sub' } } }],
        create: 'nobody',
        update: { where: { owner: { caller: '/sub' } } },
        delete: { scope: 'staff' },
      },
    },
  },
};
`;
const UNRULED = "export default { relations: { teams: { columns: { name: { type: 'text', max: 40 } } } } };";
const ACT = {
  authorization: `Basic ${btoa('ops:password')}`,
  'x-portico-console': '1',
  'content-type': 'application/json',
};

/** Starts the service on each engine. */
async function onEngines(
  t: TestContext,
  env: Readonly<Record<string, string>>,
  check: (service: TestService) => Promise<void>,
  module = MODULE,
): Promise<void> {
  await t.test('sqlite', async () => {
    await using service = await startTestService({ module, env, listens: true });
    await check(service);
  });
  await t.test('postgres', { skip: withoutPostgres ?? false }, async () => {
    const own = { ...env, DATABASE_URL: await postgresDatabase() };
    await using service = await startTestService({ module, env: own, listens: true });
    await check(service);
  });
}

/** Asks below the console's API; a text is sent as it is, anything else as JSON. */
async function ask(
  service: TestService,
  path: string,
  method = 'GET',
  body?: unknown,
  headers: Readonly<Record<string, string>> = ACT,
) {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  const init = { method, headers, ...(body !== undefined && { body: sent }) };
  const reply = await fetch(`${service.urls.management}/actuator/console/api/${path}`, init);
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

test('the console reads and writes all rows, at the paths of REST, whatever the rules say', async (t) => {
  await onEngines(t, OPS, async (service) => {
    const described = JSON.parse((await ask(service, 'relations')).text).relations;
    const notes = described.find(({ name }: { name: string }) => name === 'notes');
    assert.deepEqual(
      notes.columns.map(({ name, kind }: { name: string; kind: string }) => `${name} ${kind}`),
      [
        'id serial',
        'title text',
        'owner text',
        'price decimal',
        'kind enum',
        'team_id integer',
        'writer_id integer',
      ],
    );
    assert.deepEqual([notes.isWritable, notes.isFollowed, notes.isRuled], [true, true, true]);
    assert.deepEqual(notes.columns[3].default, '1.50');
    const teams = described.find(({ name }: { name: string }) => name === 'teams');
    assert.deepEqual(teams.inverses, [
      { name: 'notes', relation: 'notes', there: ['team_id'], here: ['id'] },
    ]);
    const users = described.find(({ name }: { name: string }) => name === 'users');
    assert.equal(users.isWritable, false);

    assert.equal((await ask(service, 'rows/teams', 'POST', { name: 'Blue' })).status, 201);
    const created = await ask(service, 'rows/notes', 'POST', { title: 'One', owner: 'ann', team_id: 1 });
    assert.equal(created.status, 201, created.text);
    const etag = created.headers.get('etag') ?? '';
    const changed = await ask(service, 'rows/notes/1', 'PATCH', { price: '2' }, { ...ACT, 'if-match': etag });
    assert.equal(JSON.parse(changed.text).price, '2.00');
    const late = await ask(service, 'rows/notes/1', 'PATCH', { price: '3' }, { ...ACT, 'if-match': etag });
    assert.equal(late.status, 412);
    const wrong = await ask(service, 'rows/notes', 'POST', { titel: 'x', owner: 'ann', price: 'x' });
    assert.deepEqual(
      JSON.parse(wrong.text).errors.map(({ pointer }: { pointer: string }) => pointer),
      ['#/titel', '#/title', '#/price'],
    );
    const taken = await ask(service, 'rows/notes', 'POST', { title: 'One', owner: 'ann' });
    assert.equal(taken.status, 409);
    const list = await ask(service, 'rows/notes?title:contains=n&fields=*,team(name)', 'GET', undefined, {
      ...ACT,
      prefer: 'count=exact',
    });
    assert.equal(list.headers.get('x-total-count'), '1');
    assert.deepEqual(JSON.parse(list.text)[0].team, { name: 'Blue' });
    assert.equal((await ask(service, 'rows/users', 'POST', { name: 'a', email: 'a@b.c' })).status, 404);
    assert.equal((await ask(service, 'rows/users')).text, '[]');
    assert.equal((await ask(service, 'rows/notes/1', 'DELETE')).status, 204);
    assert.equal((await ask(service, 'rows/none')).status, 404);
    // The rules hold at REST all the while.
    const refused = await fetch(`${service.urls.rest}/notes`, { method: 'POST', body: '{}' });
    assert.equal(refused.status, 401);
  });
});

test('the rules let a caller with claims do with a row what REST lets it do', async (t) => {
  await onEngines(t, OPS, async (service) => {
    for (const owner of ['ann', 'ben']) {
      const reply = await ask(service, 'rows/notes', 'POST', { title: owner, owner });
      assert.equal(reply.status, 201, reply.text);
    }
    const may = async (key: number, claims?: unknown) => {
      const query = new URLSearchParams({ relation: 'notes', key: String(key) });
      if (claims !== undefined) query.set('claims', JSON.stringify(claims));
      const { status, text } = await ask(service, `row-verdicts?${query}`);
      return status === 200 ? JSON.parse(text).may : status;
    };
    assert.deepEqual(await may(1, { sub: 'ann' }), ['read', 'update']);
    assert.deepEqual(await may(2, { sub: 'ann' }), []);
    assert.deepEqual(await may(2, { sub: 'ann', scope: 'staff' }), ['read', 'delete']);
    assert.deepEqual(await may(1), []);
    assert.equal(await may(9, { sub: 'ann' }), 404);
    assert.equal(await may(1, ['ann']), 400);
  });
});

test('writes to rows need the header of the console, and stay undone with read-only access', async (t) => {
  const writes = [
    ['POST', 'rows/teams'],
    ['PUT', 'rows/teams/1'],
    ['PATCH', 'rows/teams/1'],
    ['DELETE', 'rows/teams/1'],
  ] as const;
  const check = async (service: TestService) => {
    const bare = { 'content-type': 'application/json' };
    for (const [method, path] of writes) {
      assert.match(
        (await ask(service, path, method, { name: 'Red' }, bare)).text,
        /x-portico-console/,
        method,
      );
      const foreign = { ...ACT, origin: 'http://evil.example' };
      assert.equal((await ask(service, path, method, { name: 'Red' }, foreign)).status, 403, method);
    }
    assert.equal((await ask(service, 'rows/teams')).text, '[]');
  };
  await onEngines(t, {}, check, UNRULED);
  const readOnly = async (service: TestService) => {
    for (const [method, path] of writes) {
      const reply = await ask(service, path, method, { name: 'Red' });
      assert.deepEqual([reply.status, reply.headers.get('allow')], [405, 'GET, HEAD'], method);
    }
    const [teams] = JSON.parse((await ask(service, 'relations')).text).relations;
    assert.equal(teams.isWritable, false);
  };
  await onEngines(t, { MANAGEMENT_ENDPOINT_ACCESS: 'console=read-only' }, readOnly, UNRULED);
});

test('rows are hidden where other callers need credentials, or rules ask who they are, and management does not', async (t) => {
  const tokens = { API_REQUIRED: 'all', API_TOKENS: 'a-token-of-some-length-0001' };
  const hidden = (why: RegExp) => async (service: TestService) => {
    for (const path of ['relations', 'rows/teams', 'rows/teams/1', 'rows/none']) {
      const reply = await ask(service, path);
      assert.deepEqual(
        [reply.status, why.test(reply.text)],
        path === 'rows/none' ? [404, false] : [403, true],
        path,
      );
    }
    assert.equal((await ask(service, 'rows/teams', 'POST', { name: 'Red' })).status, 403);
    const { closed } = JSON.parse((await ask(service, 'about')).text);
    assert.match(closed.relations, why);
  };
  await onEngines(t, tokens, hidden(/other doors ask for credentials/), UNRULED);
  await onEngines(t, {}, hidden(/rules say who may read them/));
  await onEngines(t, { ...tokens, ...OPS, MANAGEMENT_INCLUDE: 'console,auditevents' }, async (service) => {
    assert.equal((await ask(service, 'rows/teams', 'GET', undefined, {})).status, 401);
    assert.equal((await ask(service, 'rows/teams', 'POST', { name: 'Red' })).status, 201);
    assert.equal((await ask(service, 'rows/teams', 'POST', {})).status, 400);
    const events = await waitFor('the event', async () => {
      const reply = await fetch(`${service.urls.management}/actuator/auditevents?type=ENDPOINT_WRITTEN`, {
        headers: ACT,
      });
      const kept = JSON.parse(await reply.text()).events;
      return kept.length > 0 && kept;
    });
    assert.deepEqual(
      events.map(({ principal, data }: { principal: string; data: Record<string, unknown> }) =>
        [principal, data.endpoint, data.method, data.param].join(' '),
      ),
      ['ops relations POST teams'],
    );
  });
});
