import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import { openDatabase } from '../../sql/open.ts';
import type { Access } from '../masking.ts';
import type { ManagementOptions } from '../options.ts';

const NOW = 1_700_000_000_000;
const UNRESTRICTED = { access: { endpoints: new Map<string, Access>([['deliveries', 'unrestricted']]) } };

/** A door over a database with one delivery for each event. */
async function open(events: readonly string[], changes: Partial<ManagementOptions> = {}) {
  const database = await openDatabase('sqlite::memory:');
  const { inbox, deliveries } = database;
  for (const [i, event] of events.entries()) {
    const body = Buffer.from(`{"event":"${event}","data":{"n":12345678901234567890}}`);
    await inbox.append({
      id: `${event}-${i}`,
      source: event === 'signed' ? 'gh' : '',
      event,
      dataPointer: '/data',
      contentType: 'application/json',
      body,
      receivedAt: NOW + i,
      dedupKey: null,
      jobs: event === 'unhandled' ? [] : [{ target: `handler:${event}`, orderKey: null }],
    });
  }
  const plan = ({ event }: { readonly event: string | null }) =>
    event === 'unhandled' ? [] : [{ target: `handler:${event}`, orderKey: null }];
  const app = await managementApp({ deliveries: { log: deliveries, plan }, ...changes });
  const get = async (path: string) => {
    const { statusCode, body } = await app.inject(`/actuator/deliveries${path}`);
    return { status: statusCode, body, json: body === '' ? undefined : JSON.parse(body) };
  };
  const post = async (id: string, payload: unknown) => {
    const reply = await app.inject({
      method: 'POST',
      url: `/actuator/deliveries/${id}`,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(payload),
    });
    return reply.statusCode;
  };
  const settle = async (event: string, kind: 'done' | 'dead' | 'retry') => {
    const [job] = await inbox.claim(`handler:${event}`, 1, 'me', 10_000, { now: NOW + 10_000 });
    assert.ok(job);
    const error = 'Error: no answer from https://me:canary@host/';
    const outcomes = {
      done: { kind: 'done' },
      dead: { kind: 'dead', error },
      retry: { kind: 'retry', error, wait: 1_000 },
    } as const;
    await inbox.settle(job, 'me', outcomes[kind], NOW);
  };
  return {
    app,
    get,
    post,
    settle,
    async [Symbol.asyncDispose]() {
      await app.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

test('a list, the newest first, page by page', async () => {
  await using door = await open(['a', 'b', 'signed']);
  const { status, json } = await door.get('?limit=2');
  assert.equal(status, 200);
  assert.deepEqual(json, {
    items: [
      {
        seq: 3,
        id: 'signed-2',
        source: 'gh',
        event: 'signed',
        senderEvent: 'signed',
        status: 'pending',
        receivedAt: new Date(NOW + 2).toISOString(),
        plannedAt: null,
        attempts: 0,
        size: 52,
        error: null,
      },
      {
        seq: 2,
        id: 'b-1',
        source: '',
        event: 'b',
        senderEvent: 'b',
        status: 'pending',
        receivedAt: new Date(NOW + 1).toISOString(),
        plannedAt: null,
        attempts: 0,
        size: 47,
        error: null,
      },
    ],
    next: 2,
  });
  const rest = await door.get('?limit=2&before=2');
  assert.deepEqual([rest.json.items.map(({ id }: { id: string }) => id), rest.json.next], [['a-0'], null]);
});

test('a list in the order of arrival, page by page, from before the first', async () => {
  await using door = await open(['a', 'b', 'signed']);
  const ids = (json: { items: { id: string }[] }) => json.items.map(({ id }) => id);
  const first = await door.get('?limit=2&after=0');
  assert.deepEqual([ids(first.json), first.json.next], [['a-0', 'b-1'], 2]);
  const rest = await door.get('?limit=2&after=2');
  assert.deepEqual([ids(rest.json), rest.json.next], [['signed-2'], null]);
  assert.deepEqual(ids((await door.get('?after=3')).json), []);
});

test('the whole body as it was received', async () => {
  await using door = await open(['a']);
  const reply = await door.app.inject('/actuator/deliveries/a-0?body=raw');
  assert.equal(reply.headers['content-type'], 'application/octet-stream');
  assert.equal(reply.body, '{"event":"a","data":{"n":12345678901234567890}}');
  await using closed = await open(['a'], { showDetails: 'never' });
  const hidden = await closed.app.inject('/actuator/deliveries/a-0?body=raw');
  assert.equal(JSON.stringify(hidden.json()).includes('12345'), false);
});

test('a list is filtered', async () => {
  await using door = await open(['a', 'b', 'signed']);
  await door.settle('a', 'dead');
  for (const [query, ids] of [
    ['?status=dead', ['a-0']],
    ['?event=b', ['b-1']],
    ['?source=gh', ['signed-2']],
    ['?source=', ['b-1', 'a-0']],
    [`?since=${new Date(NOW + 1).toISOString()}`, ['signed-2', 'b-1']],
    [`?until=${new Date(NOW + 1).toISOString()}`, ['a-0']],
    ['?since=15m', []],
    ['?status=dead&event=b', []],
  ] as const) {
    const { json } = await door.get(query);
    assert.deepEqual(
      json.items.map(({ id }: { id: string }) => id),
      ids,
      query,
    );
  }
});

test('nonsense is a 400 that says what is wrong', async () => {
  await using door = await open([]);
  for (const [query, message] of [
    ['?statu=dead', 'There is no such parameter; did you mean status?'],
    [
      '?x',
      'There is no such parameter; there are status, event, source, target, since, until, text, limit, before, after',
    ],
    ['?status=deat', /^status must be one of .*; did you mean dead\?$/],
    ['?since=now', /^since must be an ISO 8601 time/],
    ['?limit=1001', /^limit must be a whole number from 1 to 1000/],
    ['?limit=0&before=-1', /^limit must be .*; before must be/],
    ['?event=a&event=b', 'event is given more than once'],
    ['?after=1&before=2', 'before and after exclude each other'],
    ['?after=-1', /^after must be a whole number/],
  ] as const) {
    const { status, json } = await door.get(query);
    assert.equal(status, 400, query);
    if (typeof message === 'string') assert.equal(json.message, message);
    else assert.match(json.message, message);
  }
});

test('a delivery with its jobs and its body, every digit of it', async () => {
  await using door = await open(['a']);
  await door.settle('a', 'dead');
  const { status, body, json } = await door.get('/a-0');
  assert.equal(status, 200);
  assert.ok(body.endsWith('"body":{"event":"a","data":{"n":12345678901234567890}}}'));
  const [job] = json.jobs;
  assert.equal(job.status, 'dead');
  assert.equal(job.error, 'Error: no answer from https://******@host/');
  assert.equal((await door.get('/b-0')).status, 404);
  assert.equal((await door.get('/')).status, 404);
});

test('bodies and errors are shown when details are', async () => {
  for (const [showDetails, shown] of [
    ['never', false],
    ['when-authorized', true],
    ['always', true],
  ] as const) {
    await using door = await open(['a'], { showDetails });
    await door.settle('a', 'dead');
    const { json } = await door.get('/a-0');
    assert.equal('body' in json, shown, showDetails);
    assert.equal('error' in json.jobs[0], shown, showDetails);
  }
});

test('nobody sees a delivery without logging in where that is asked for', async () => {
  await using door = await open(['a'], { users: [{ user: 'ops', password: 'right', roles: [] }] });
  for (const path of ['', '/a-0']) {
    const { status, body } = await door.get(path);
    assert.equal(status, 401);
    assert.doesNotMatch(body, /a-0|12345/);
  }
});

test('it is read-only unless somebody says otherwise', async () => {
  await using door = await open(['a']);
  await door.settle('a', 'dead');
  assert.equal(await door.post('a-0', { action: 'replay' }), 405);
  assert.equal((await door.get('/a-0')).json.status, 'dead');
  const options = await door.app.inject({ method: 'OPTIONS', url: '/actuator/deliveries/a-0' });
  assert.equal(options.headers.allow, 'GET, HEAD, OPTIONS');
});

test('a dead delivery is replayed, an open one is a conflict, an unknown one is not there', async () => {
  await using door = await open(['a', 'unhandled'], UNRESTRICTED);
  assert.equal(await door.post('a-0', { action: 'replay' }), 409);
  await door.settle('a', 'dead');
  assert.equal(await door.post('a-0', { action: 'replay' }), 204);
  assert.equal((await door.get('/a-0')).json.status, 'pending');
  assert.equal(await door.post('b-0', { action: 'replay' }), 404);
  assert.equal(await door.post('unhandled-1', { action: 'replay' }), 409);
});

test('a delivery is discarded; one that is settled is a conflict', async () => {
  await using door = await open(['a', 'b'], UNRESTRICTED);
  await door.settle('b', 'done');
  assert.equal(await door.post('a-0', { action: 'discard' }), 204);
  assert.equal((await door.get('/a-0')).json.status, 'discarded');
  assert.equal(await door.post('a-0', { action: 'discard' }), 409);
  assert.equal(await door.post('b-1', { action: 'discard' }), 409);
  assert.equal(await door.post('c-0', { action: 'discard' }), 404);
});

test('a body that asks for nothing known is a 400 and does nothing', async () => {
  await using door = await open(['a'], UNRESTRICTED);
  await door.settle('a', 'dead');
  for (const body of [{}, [], 'replay', null, { action: 'reply' }, { action: 'replay', now: true }]) {
    assert.equal(await door.post('a-0', body), 400, JSON.stringify(body));
  }
  assert.equal((await door.get('/a-0')).json.status, 'dead');
});

test('a page on another site cannot replay', async () => {
  await using door = await open(['a'], UNRESTRICTED);
  await door.settle('a', 'dead');
  const reply = await door.app.inject({
    method: 'POST',
    url: '/actuator/deliveries/a-0',
    headers: { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' },
    payload: '{"action":"replay"}',
  });
  assert.equal(reply.statusCode, 403);
  assert.equal((await door.get('/a-0')).json.status, 'dead');
});

test('a long body is cut', async () => {
  const event = 'x'.repeat(70_000);
  await using long = await openDatabase('sqlite::memory:');
  const body = Buffer.from(JSON.stringify({ event }));
  await long.inbox.append({
    id: 'long',
    source: '',
    event: 'long',
    dataPointer: '',
    contentType: null,
    body,
    receivedAt: NOW,
    dedupKey: null,
    jobs: [],
  });
  await using app = await managementApp({ deliveries: { log: long.deliveries, plan: () => [] } });
  const json = (await app.inject('/actuator/deliveries/long')).json();
  assert.equal(json.bodyTruncated, true);
  assert.deepEqual(Buffer.from(json.bodyBase64, 'base64'), body.subarray(0, 64 * 1024));
});

test('counts by status, whatever status is filtered', async () => {
  await using door = await open(['a', 'a', 'b', 'unhandled', 'signed']);
  await door.settle('a', 'dead');
  await door.settle('b', 'done');
  const counts = { unhandled: 1, processing: 0, pending: 2, dead: 1, done: 1, discarded: 0 };
  assert.deepEqual((await door.get('/counts')).json, { total: 5, counts, next: null });
  assert.deepEqual((await door.get('/counts?status=done')).json, { total: 5, counts, next: null });
  const { json } = await door.get('/counts?event=a');
  assert.deepEqual([json.total, json.counts.dead, json.counts.pending], [2, 1, 1]);
  assert.equal((await door.get('/counts?stat=done')).status, 400);
});

test('what fails: dead deliveries, and each target with its last error, redacted', async () => {
  await using door = await open(['a', 'a', 'b', 'c']);
  assert.deepEqual((await door.get('/failing')).json, { dead: 0, targets: [] });
  await door.settle('a', 'dead');
  await door.settle('b', 'retry');
  await door.settle('c', 'done');
  const error = 'Error: no answer from https://******@host/';
  assert.deepEqual((await door.get('/failing')).json, {
    dead: 1,
    targets: [
      { target: 'handler:a', dead: 1, retrying: 0, lastDeadAt: new Date(NOW).toISOString(), error },
      { target: 'handler:b', dead: 0, retrying: 1, lastDeadAt: null, error },
    ],
  });
  const { json } = await door.get('?status=dead');
  assert.deepEqual(
    json.items.map(({ error: shown }: { error: string }) => shown),
    [error],
  );
});

test('errors are not listed where details are hidden', async () => {
  await using door = await open(['a'], { showDetails: 'never' });
  await door.settle('a', 'dead');
  for (const path of ['/failing', '?status=dead', '/a-0']) {
    const { body, status } = await door.get(path);
    assert.equal(status, 200);
    assert.doesNotMatch(body, /no answer/, path);
  }
});
