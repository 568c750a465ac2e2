import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startReceiver } from '../support/receiver.ts';
import { type SendingService, sendingEngines, startSending } from '../support/sending.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const OPS = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: 'password' };
const EXPOSED = {
  ...OPS,
  MANAGEMENT_INCLUDE: 'console,webhookendpoints,openapi,auditevents',
  AUDIT_RETENTION: '1',
};
const CREDENTIALS = { authorization: `Basic ${btoa('ops:password')}` };
const ACT = { ...CREDENTIALS, 'x-portico-console': '1', 'content-type': 'application/json' };
const TOKEN = 'kept-in-the-query-7f3a';
const KEY = 'kept-in-a-header-91bc';

type Ask = (
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at members of many shapes
) => Promise<{ readonly status: number; readonly text: string; readonly body: any }>;

/** Asks the management door below a path: GET, or POST with a body. */
const asker = (service: SendingService, base: string): Ask => {
  return async (path, body, headers = body === undefined ? CREDENTIALS : ACT) => {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const reply = await fetch(`${service.service.urls.management}/actuator/${base}${path}`, {
      headers,
      ...sent,
    });
    const text = await reply.text();
    return { status: reply.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined };
  };
};

/** The receivers of events, and the endpoints of three tenants, in each state. */
async function fill(sending: SendingService, url: string) {
  const gone = await sending.endpoint('acme', { url: `${url}/gone?token=${TOKEN}` });
  const failing = await sending.endpoint('acme', { url: `${url}/broken`, headers: { 'x-key': KEY } });
  const working = await sending.endpoint('acme', { url: `${url}/fine`, description: 'The books' });
  const paused = await sending.endpoint('other', { url: `${url}/fine`, enabled: false });
  const idle = await sending.endpoint('third', { url: `${url}/fine` });
  await sending.publish({ tenant: 'acme', type: 'invoice.paid', data: { id: 1 } });
  await waitFor('the states', async () => {
    const { items } = (await sending.call('GET', '/webhooks/tenants/acme/endpoints')).body;
    const stats = (await sending.call('GET', `/webhooks/tenants/acme/endpoints/${failing.id}/stats`)).body;
    const done = (await sending.call('GET', `/webhooks/tenants/acme/endpoints/${working.id}/stats`)).body;
    return (
      items[0].disabledBecause === 'gone' &&
      items[1].failingSince !== null &&
      stats.byStatus.dead === 1 &&
      done.byStatus.done === 1
    );
  });
  return { gone, failing, working, paused, idle };
}

async function onEngines(
  t: TestContext,
  check: (sending: SendingService, url: string) => Promise<void>,
  options: object = {},
  env: Readonly<Record<string, string>> = EXPOSED,
): Promise<void> {
  for (const [name, { skip, url }] of Object.entries(sendingEngines)) {
    await t.test(name, { skip }, async () => {
      await using receiver = await startReceiver({
        '/broken': (response) => response.writeHead(503).end('The ledger is being closed'),
        [`/gone?token=${TOKEN}`]: (response) => response.writeHead(410).end(),
      });
      await using sending = await startSending(await url(), { attempts: 2, ...options }, '', env);
      await check(sending, receiver.url);
    });
  }
}

test('the endpoints of all tenants are listed by state, those that need somebody first', async (t) => {
  await onEngines(t, async (sending, url) => {
    const { gone, failing, working, paused, idle } = await fill(sending, url);
    for (const base of ['webhookendpoints', 'console/api/webhookendpoints']) {
      const ask = asker(sending, base);
      const listed = async (query: string) => {
        const { status, body, text } = await ask(query);
        assert.equal(status, 200, text);
        return body.items.map(({ id, state }: { id: string; state: string }) => [id, state]);
      };
      assert.deepEqual(await listed(''), [
        [gone.id, 'disabled'],
        [failing.id, 'failing'],
        [paused.id, 'manual'],
        [working.id, 'working'],
        [idle.id, 'working'],
      ]);
      assert.deepEqual(await listed('?state=failing'), [[failing.id, 'failing']]);
      assert.deepEqual(await listed('?tenant=other'), [[paused.id, 'manual']]);
      assert.deepEqual(await listed('?tenant=acme&state=working'), [[working.id, 'working']]);
      assert.deepEqual(await listed('?tenant=nobody'), []);
      const { counts } = (await ask('/counts')).body;
      assert.deepEqual(counts, { disabled: 1, failing: 1, manual: 1, working: 2 });
      const own = (await ask('/counts?tenant=acme')).body.counts;
      assert.deepEqual(own, { disabled: 1, failing: 1, manual: 0, working: 1 });
      const [first, second, , fourth] = (await ask('')).body.items;
      assert.equal(first.tenant, 'acme');
      assert.equal(first.disabledBecause, 'gone');
      assert.ok(Date.parse(first.disabledAt) >= Date.parse(first.createdAt));
      assert.equal(second.disabledAt, null);
      assert.deepEqual(second.headers, ['x-key']);
      assert.deepEqual([second.recent.events, second.recent.dead, second.recent.lastSuccessAt], [1, 1, null]);
      assert.match(second.recent.error, /answered 503/);
      assert.ok(Date.parse(second.recent.lastFailureAt) >= Date.parse(second.failingSince));
      assert.deepEqual([fourth.recent.done, fourth.recent.lastFailureAt], [1, null]);
      assert.ok(Date.parse(fourth.recent.lastSuccessAt) > 0);
      for (const [query, problem] of [
        ['?state=dead', /state must be one of disabled, failing, manual, working/],
        ['?stat=failing', /did you mean "?state/i],
        ['?tenant=a/b', /tenant must be the name of a tenant/],
        ['?after=4.1', /after must be/],
        ['?limit=101', /limit must be a number from 1 to 100/],
        ['?tenant=a&tenant=b', /tenant is given more than once/],
      ] as const) {
        const { status, text } = await ask(query);
        assert.equal(status, 400, text);
        assert.match(text, problem);
      }
    }
  });
});

test('a list of all tenants has every endpoint once, page by page, also while others change', async (t) => {
  await onEngines(t, async (sending, url) => {
    const ids: string[] = [];
    for (let i = 0; i < 40; i++)
      ids.push((await sending.endpoint(`t${i % 7}`, { url, enabled: i % 3 !== 0 })).id);
    const ask = asker(sending, 'webhookendpoints');
    const all: { id: string; state: string; tenant: string }[] = [];
    let after = '';
    for (let pages = 0; ; pages++) {
      const { items, next } = (await ask(`?limit=6${after}`)).body;
      all.push(...items);
      if (pages === 2) {
        // Behind the page already, and before it.
        const path = `/webhooks/tenants/t3/endpoints/${ids[3]}`;
        assert.equal((await sending.call('DELETE', path)).status, 204);
        await sending.endpoint('t0', { url, enabled: false });
      }
      if (next === null) break;
      after = `&after=${next}`;
    }
    const isManual = (i: number) => i % 3 === 0;
    const order = [...ids.filter((_, i) => isManual(i)), ...ids.filter((_, i) => !isManual(i))];
    const made = all.filter(({ id }) => ids.includes(id)).map(({ id }) => id);
    assert.deepEqual(
      made,
      order.filter((id) => made.includes(id)),
    );
    assert.ok(made.length >= 39, String(made.length));
    const own = (await ask('?tenant=t1&limit=4')).body;
    const rest = (await ask(`?tenant=t1&limit=4&after=${own.next}`)).body;
    assert.deepEqual(
      [...own.items, ...rest.items].map(({ tenant }: { tenant: string }) => tenant),
      Array(6).fill('t1'),
    );
    assert.equal(rest.next, null);
  });
});

test('an endpoint shows its last attempts, and never a secret', async (t) => {
  await onEngines(t, async (sending, url) => {
    const made = await fill(sending, url);
    const ask = asker(sending, 'webhookendpoints');
    const { status, body } = await ask(`/${made.failing.id}`);
    assert.equal(status, 200);
    assert.equal(body.state, 'failing');
    assert.deepEqual(body.stats.byStatus, { dead: 1 });
    const attempts = body.attempts.map(({ attempt, outcome, status: answered, answer, type }: never) => [
      attempt,
      outcome,
      answered,
      answer,
      type,
    ]);
    assert.deepEqual(attempts, [
      [2, 'dead', 503, 'The ledger is being closed', 'invoice.paid'],
      [1, 'retry', 503, 'The ledger is being closed', 'invoice.paid'],
    ]);
    const fine = (await ask(`/${made.working.id}`)).body;
    assert.deepEqual(
      fine.attempts.map(({ outcome, status: answered }: never) => [outcome, answered]),
      [['done', 204]],
    );
    // The event is a delivery, which the console shows.
    const console = asker(sending, 'console/api/');
    assert.equal((await console(`deliveries/${fine.attempts[0].event}`)).status, 200);
    assert.equal((await ask('/ep_000000000000000000000000')).status, 404);
    for (const base of ['webhookendpoints', 'console/api/webhookendpoints']) {
      const own = asker(sending, base);
      const pages = ['', ...Object.values(made).map(({ id }) => `/${id}`)];
      const texts = await Promise.all(pages.map(async (path) => (await own(path)).text));
      for (const secret of [...Object.values(made).map((each) => each.secret), TOKEN, KEY])
        assert.equal(texts.join().includes(secret), false, secret);
    }
  });
});

test('an operator enables an endpoint again: its failures are forgotten, and events arrive', async (t) => {
  await onEngines(
    t,
    async (sending, url) => {
      const { gone, working } = await fill(sending, url);
      const ask = asker(sending, 'console/api/webhookendpoints');
      const [first] = (await ask('?state=disabled')).body.items;
      assert.equal(first.id, gone.id);
      const api = `/webhooks/tenants/acme/endpoints/${gone.id}`;
      assert.equal((await sending.call('PATCH', api, { url: `${url}/mended` })).status, 200);
      // A change leaves the time at which it was disabled.
      assert.equal((await ask(`/${gone.id}`)).body.disabledAt, first.disabledAt);
      assert.equal((await ask(`/${gone.id}`, { action: 'enable' })).status, 204);
      const again = (await ask(`/${gone.id}`)).body;
      assert.deepEqual([again.state, again.disabledAt, again.failingSince], ['working', null, null]);
      const id = await sending.publish({ tenant: 'acme', type: 'invoice.paid', data: { id: 2 } });
      await waitFor('the event', async () => (await ask(`/${gone.id}`)).body.attempts[0]?.event === id);
      assert.equal((await ask(`/${working.id}`, { action: 'disable' })).status, 204);
      const stopped = (await ask(`/${working.id}`)).body;
      assert.deepEqual([stopped.state, stopped.disabledBecause], ['manual', 'manual']);
      for (const body of [{}, { action: 'delete' }, { action: 'enable', url: 'http://x' }, 'enable'])
        assert.equal((await ask(`/${gone.id}`, body)).status, 400, JSON.stringify(body));
      assert.equal((await ask('/ep_000000000000000000000000', { action: 'enable' })).status, 404);
      const link = await ask(`/${gone.id}`, { action: 'portal' });
      assert.equal(link.status, 200, link.text);
      assert.match(link.body.url, /^https:\/\/hooks\.example\.com\/#v1\./);
      const events = asker(sending, 'auditevents');
      await waitFor('the audit', async () => {
        const types = (await events('')).body.events.map(({ type }: { type: string }) => type);
        return ['WEBHOOK_ENDPOINT_ENABLED', 'WEBHOOK_ENDPOINT_DISABLED', 'PORTAL_OPENED'].every((type) =>
          types.includes(type),
        );
      });
    },
    { portal: { port: 0, url: 'https://hooks.example.com' } },
  );
});

test('the access of the endpoint and of the console decide who may change endpoints', async () => {
  const statusesOf = async (env: Readonly<Record<string, string>>) => {
    await using sending = await startSending(undefined, {}, '', env);
    const { id } = await sending.endpoint('acme', { url: 'http://127.0.0.1:9/' });
    const own = asker(sending, 'webhookendpoints');
    const console = asker(sending, 'console/api/webhookendpoints');
    const act = { action: 'disable' };
    return {
      reads: [(await own('', undefined, {})).status, (await own('')).status, (await console('')).status],
      acts: [(await own(`/${id}`, act)).status, (await console(`/${id}`, act)).status],
      withoutHeader: (await console(`/${id}`, act, { ...CREDENTIALS, 'content-type': 'application/json' }))
        .status,
    };
  };
  // Programs read unless the configuration lets them write; the console acts.
  assert.deepEqual(await statusesOf(EXPOSED), {
    reads: [401, 200, 200],
    acts: [405, 204],
    withoutHeader: 403,
  });
  const access = (levels: string) => ({ ...EXPOSED, MANAGEMENT_ENDPOINT_ACCESS: levels });
  assert.deepEqual((await statusesOf(access('webhookendpoints=unrestricted'))).acts, [204, 204]);
  assert.deepEqual((await statusesOf(access('webhookendpoints=read-only'))).acts, [405, 405]);
  assert.deepEqual((await statusesOf(access('console=read-only'))).acts, [405, 405]);
  assert.deepEqual(await statusesOf(access('webhookendpoints=none')), {
    reads: [401, 404, 404],
    acts: [404, 404],
    withoutHeader: 404,
  });
  const role = { ...EXPOSED, MANAGEMENT_CONSOLE_ROLE: 'admin' };
  assert.deepEqual((await statusesOf(role)).acts, [405, 403]);
  // Only the console is exposed.
  assert.deepEqual((await statusesOf(OPS)).reads, [401, 404, 200]);
});

test('the console hides them if REST asks for credentials and the management door does not', async () => {
  const module = `export default {
    webhook: { sending: true },
    api: { tokens: { reader: { secret: 'a-token-of-some-length-0123456789', scopes: ['webhooks:read'] } } },
  };`;
  await using service = await startTestService({ module, env: { API_REQUIRED: 'all' }, listens: true });
  const base = `${service.urls.management}/actuator/console/api`;
  assert.equal((await fetch(`${base}/webhookendpoints`)).status, 403);
  const about = (await (await fetch(`${base}/about`)).json()) as {
    endpoints: string[];
    closed: Record<string, string>;
  };
  assert.equal(about.endpoints.includes('webhookendpoints'), false);
  assert.match(about.closed.webhookendpoints ?? '', /MANAGEMENT_USER/);
});

test('without webhook.sending there is nothing of it', async () => {
  await using service = await startTestService({
    env: { MANAGEMENT_INCLUDE: '*', MANAGEMENT_ACCESS: 'unrestricted' },
    listens: true,
  });
  const base = `${service.urls.management}/actuator`;
  for (const path of ['', '/openapi', '/console/api/about', '/mappings'])
    assert.doesNotMatch(await (await fetch(base + path)).text(), /webhookendpoints/, path);
  for (const path of ['/webhookendpoints', '/webhookendpoints/counts', '/console/api/webhookendpoints'])
    assert.equal((await fetch(base + path)).status, 404, path);
});
