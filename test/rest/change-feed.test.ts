import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waitFor } from '../support/wait-for.ts';
import { follow, open, restDoors } from './support/rest-door.ts';

/** Opens a door on SQLite. */
const openSqlite = (env: Readonly<Record<string, string>> = {}) => open(env, 'file');
const user = (name: string) => ({ name, email: `${name}@x` });

for (const [engine, openDoor] of Object.entries(restDoors)) {
  describe(`GET /users as an event stream on ${engine}`, () => {
    test('tells of each change in order, and goes on behind the last event, after a restart too', async () => {
      await using door = await openDoor();
      await door.create('before', 'before@x');
      const ids: string[] = [];
      {
        await using stream = await follow(door.url);
        const { status, headers } = stream.response;
        assert.equal(status, 200);
        assert.equal(headers.get('content-type'), 'text/event-stream; charset=utf-8');
        assert.equal(headers.get('cache-control'), 'no-store');
        assert.equal(headers.get('x-accel-buffering'), 'no');
        assert.equal(headers.get('vary'), 'accept');
        const begin = await stream.next();
        assert.match(begin?.id ?? '', /^\d+\.\d+$/);
        assert.deepEqual({ ...begin, id: '' }, { event: '', id: '', data: '', retry: '2000' });
        ids.push(begin?.id ?? '');
        const id = await door.create('ada', 'ada@x');
        await door.send('PUT', `/update/${id}`, { body: user('ada2') });
        await door.send('DELETE', `/delete/${id}`);
        for (const [type, name] of [
          ['created', 'ada'],
          ['updated', 'ada2'],
          ['deleted', 'ada2'],
        ]) {
          const sent = await stream.next();
          assert.equal(sent?.event, `user.${type}`);
          assert.deepEqual(JSON.parse(sent?.data ?? ''), { id, name, email: `${name}@x` });
          ids.push(sent?.id ?? '');
        }
      }
      await door.create('while away', 'x@y');
      await door.service.restart();
      for (const [query, headers] of [
        ['', { 'last-event-id': ids[2] ?? '' }],
        [`?lastEventId=${ids[2]}`, {}],
        // A client that comes back has the address that it began with.
        [`?lastEventId=${ids[0]}`, { 'last-event-id': ids[2] ?? '' }],
      ] as const) {
        await using again = await follow(door.url, headers, query);
        assert.equal((await again.next())?.id, ids[2]);
        assert.deepEqual([(await again.next())?.id, (await again.next())?.event], [ids[3], 'user.created']);
      }
    });

    test('refuses what it cannot go on behind, and says what to do', async () => {
      await using door = await openDoor();
      const ask = (headers: Readonly<Record<string, string>>, path = '/users') =>
        door.get(path, { accept: 'text/event-stream', ...headers });
      const gone = await ask({ 'last-event-id': '77.1795356315800' });
      assert.equal(gone.status, 410);
      assert.equal(gone.headers.get('x-error-code'), 'EVENTS_GONE');
      assert.match(gone.body.message ?? '', /read the list again/);
      for (const id of ['x', '1', '1.', '-1.2', '1.2.3', '12345678901234567.1']) {
        const { status, headers } = await ask({ 'last-event-id': id });
        assert.deepEqual([status, headers.get('x-error-code')], [400, 'INVALID_EVENT_ID'], id);
      }
      const other = await ask({}, '/users?limit=1');
      assert.deepEqual([other.status, other.headers.get('x-error-code')], [400, 'UNKNOWN_PARAMETER']);
    });

    test('who does not ask for it gets the list, byte for byte', async () => {
      await using door = await openDoor();
      await door.create('ada', 'ada@x');
      const list = await door.get('/users');
      assert.equal(list.text, '{"status":"success","data":[{"id":1,"name":"ada","email":"ada@x"}]}');
      for (const accept of [
        '*/*',
        'application/json',
        'application/json, text/event-stream',
        'text/event-stream;q=0.5, application/json',
        'text/event-stream;q=0',
        'text/*',
      ]) {
        const { status, headers, text } = await door.get('/users', { accept });
        assert.equal(status, 200);
        assert.equal(text, list.text, accept);
        const rest = (all: Headers) =>
          [...all].filter(([name]) => name !== 'date' && name !== 'x-request-id');
        assert.deepEqual(
          rest(headers).filter(([name]) => name !== 'last-modified'),
          rest(list.headers).filter(([name]) => name !== 'last-modified'),
        );
      }
    });

    test('HEAD has the fields of a stream and no end to wait for', async () => {
      await using door = await openDoor();
      const { status, headers, text } = await door.send('HEAD', '/users', {
        headers: { accept: 'text/event-stream' },
      });
      assert.deepEqual([status, text], [200, '']);
      assert.equal(headers.get('content-type'), 'text/event-stream; charset=utf-8');
    });

    test('a stop ends the streams with a time to come back', async () => {
      await using door = await openDoor();
      await using stream = await follow(door.url);
      await stream.next();
      await door.create('last', 'last@x');
      assert.equal((await stream.next())?.event, 'user.created');
      await door.service.current.stop();
      const retry = (await stream.next())?.retry ?? '';
      assert.ok(Number(retry) >= 1_000 && Number(retry) <= 3_000, retry);
      assert.equal(await stream.next(), undefined);
    });
  });
}

test('more streams than may be are refused, until one has left', async () => {
  await using door = await openSqlite({ REST_MAX_STREAMS: '2' });
  const ask = () => door.get('/users', { accept: 'text/event-stream' });
  await using _first = await follow(door.url);
  {
    await using _second = await follow(door.url);
    const { status, headers } = await ask();
    assert.deepEqual(
      [status, headers.get('x-error-code'), headers.get('retry-after')],
      [503, 'TOO_MANY_STREAMS', '5'],
    );
    assert.equal((await door.get('/users')).status, 200);
  }
  await waitFor('room', async () => {
    await using third = await follow(door.url);
    return third.response.status === 200;
  });
});
