import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engineUrls } from '../support/databases.ts';
import { startTestService } from '../support/service.ts';

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
  readonly body: any;
}

const JSON_BODY = { 'content-type': 'application/json' };
const ANN = { name: 'Ann', email: 'ann@x.org' };

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`users with the paths of a relation, on ${engine}`, () => {
    async function start(relations?: string) {
      const service = await startTestService({
        env: { DATABASE_URL: await urlOf(), REST_USERS: 'standard', MANAGEMENT_INCLUDE: 'openapi' },
        ...(relations !== undefined && { module: `export default { relations: ${relations} };` }),
        listens: true,
      });
      const { rest = '', management = '' } = service.urls;
      const ask = async (
        method: string,
        path: string,
        body?: unknown,
        headers: Readonly<Record<string, string>> = {},
      ): Promise<Reply> => {
        const sent = body === undefined ? null : JSON.stringify(body);
        const reply = await fetch(rest + path, { method, headers: { ...JSON_BODY, ...headers }, body: sent });
        const text = await reply.text();
        return {
          status: reply.status,
          headers: reply.headers,
          body: text === '' ? undefined : JSON.parse(text),
        };
      };
      return { service, rest, management, ask, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
    }

    test('have the statuses, bodies and tags of one', async () => {
      await using door = await start();
      const { ask } = door;
      const created = await ask('POST', '/users', ANN);
      assert.deepEqual([created.status, created.body], [201, { id: 1, ...ANN }]);
      assert.equal(created.headers.get('location'), '/users/1');
      const etag = created.headers.get('etag') ?? '';
      const read = await ask('GET', '/users/1');
      assert.deepEqual([read.status, read.body, read.headers.get('etag')], [200, { id: 1, ...ANN }, etag]);
      assert.deepEqual((await ask('GET', '/users')).body, [{ id: 1, ...ANN }]);
      const changed = await ask('PATCH', '/users/1', { name: 'Anna' }, { 'if-match': etag });
      assert.deepEqual([changed.status, changed.body], [200, { id: 1, ...ANN, name: 'Anna' }]);
      const late = await ask('PATCH', '/users/1', { name: 'Late' }, { 'if-match': etag });
      assert.deepEqual([late.status, late.body.code], [412, 'PRECONDITION_FAILED']);
      const put = await ask('PUT', '/users/1', { name: 'Bea', email: 'bea@x' });
      assert.deepEqual([put.status, put.body], [200, { id: 1, name: 'Bea', email: 'bea@x' }]);
      assert.equal((await ask('DELETE', '/users/1')).status, 204);
      for (const path of ['/users/1', '/update/1', '/delete/1']) {
        const missing = await ask('GET', path);
        assert.equal(missing.status, 404, path);
        assert.equal(missing.headers.get('content-type'), 'application/problem+json', path);
      }
      assert.equal(
        (await ask('OPTIONS', '/users/1')).headers.get('allow'),
        'GET, HEAD, PATCH, PUT, DELETE, OPTIONS',
      );
      assert.equal((await ask('OPTIONS', '/update/1')).status, 404);
    });

    test('are as valid as by the contract, by every way in', async () => {
      await using door = await start();
      const { ask } = door;
      await ask('POST', '/users', ANN);
      const wrong = { name: ' ', email: 'ann.x.org' };
      const pointers = ({ body }: Reply) => body.errors.map((each: { pointer: string }) => each.pointer);
      assert.deepEqual(pointers(await ask('POST', '/users', wrong)), ['#/name', '#/email']);
      assert.deepEqual(pointers(await ask('PUT', '/users/1', wrong)), ['#/name', '#/email']);
      assert.deepEqual(pointers(await ask('PATCH', '/users/1', { email: '@x' })), ['#/email']);
      assert.deepEqual(pointers(await ask('PATCH', '/users/1', { name: 'n'.repeat(501) })), ['#/name']);
      // 251 characters of two UTF-16 code units each, of which the contract allows 500.
      assert.deepEqual(pointers(await ask('PATCH', '/users/1', { name: '\u{1f600}'.repeat(251) })), [
        '#/name',
      ]);
      assert.deepEqual(pointers(await ask('POST', '/users', [ANN, wrong])), ['#/1/name', '#/1/email']);
      const batch = await ask('POST', '/_batch', {
        writes: [{ method: 'POST', path: '/users', body: wrong }],
      });
      assert.deepEqual(pointers(batch), ['#/writes/0/body/name', '#/writes/0/body/email']);
      const copied = await ask('POST', '/_batch', {
        writes: [
          { method: 'PATCH', path: '/users/1', body: {} },
          { method: 'POST', path: '/users', body: { name: 'b', email: { $result: 0, pointer: '/name' } } },
        ],
      });
      assert.match(copied.body.detail, /of the type filled, not address/);
      for (const [type, text] of [
        ['application/x-ndjson', `${JSON.stringify(wrong)}\n`],
        ['text/csv', `name,email\n${wrong.name},${wrong.email}\n`],
      ] as const) {
        const sent = await fetch(`${door.rest}/users`, {
          method: 'POST',
          headers: { 'content-type': type },
          body: text,
        });
        assert.match(await sent.text(), /"created":0,"refused":1/, type);
      }
      // A filter finds what is there, in any form.
      assert.deepEqual((await ask('GET', '/users?email=ann')).body, []);
      assert.deepEqual((await ask('GET', '/users?fields=name')).body, [{ name: 'Ann' }]);
    });

    test('are followed, as other relations are', { timeout: 60_000 }, async () => {
      await using door = await start();
      const { ask, rest } = door;
      const stop = new AbortController();
      const stream = await fetch(`${rest}/users`, {
        headers: { accept: 'text/event-stream' },
        signal: stop.signal,
      });
      await ask('POST', '/users', ANN);
      await ask('PATCH', '/users/1', { name: 'Anna' });
      await ask('DELETE', '/users/1');
      let text = '';
      const decoder = new TextDecoder();
      for await (const chunk of stream.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        if (text.includes('user.deleted')) break;
      }
      stop.abort();
      assert.deepEqual(text.match(/^event: .*/gm), [
        'event: user.created',
        'event: user.updated',
        'event: user.deleted',
      ]);
    });

    test('show all of their columns, and stand in rows that refer to them', async () => {
      await using door = await start(`{
        users: { columns: { phone: { type: 'text', max: 30, nullable: true } } },
        books: { columns: { title: { type: 'text', max: 90 }, owner: { type: 'reference', to: 'users' } } },
      }`);
      const { ask } = door;
      const created = await ask('POST', '/users', { ...ANN, phone: '1' });
      assert.deepEqual(created.body, { id: 1, ...ANN, phone: '1' });
      await ask('POST', '/books', { title: 'Emma', owner_id: 1 });
      assert.deepEqual((await ask('GET', '/users?fields=name,books(title)')).body, [
        { name: 'Ann', books: [{ title: 'Emma' }] },
      ]);
      assert.deepEqual((await ask('GET', '/books?fields=title,owner(*)')).body, [
        { title: 'Emma', owner: { id: 1, ...ANN, phone: '1' } },
      ]);
      const refused = await ask('DELETE', '/users/1');
      assert.deepEqual([refused.status, refused.body.code], [409, 'REFERENCED']);
      const both = await ask('POST', '/_batch', {
        writes: [
          { method: 'POST', path: '/users', body: { name: 'Bob', email: 'bob@x' } },
          { method: 'POST', path: '/books', body: { title: 'B', owner_id: { $result: 0, pointer: '/id' } } },
        ],
      });
      assert.deepEqual(
        both.body.results.map((each: Reply) => each.status),
        [201, 201],
      );
    });

    test('are described as a relation', async () => {
      await using door = await start();
      const reply = await fetch(`${door.management}/actuator/openapi/rest`);
      const { paths } = (await reply.json()) as { readonly paths: Readonly<Record<string, object>> };
      assert.deepEqual(
        Object.keys(paths).filter((path) => /users|update|delete/.test(path)),
        ['/users', '/users/{id}'],
      );
      assert.deepEqual(Object.keys(paths['/users/{id}'] ?? {}).toSorted(), [
        'delete',
        'get',
        'patch',
        'put',
        'servers',
      ]);
    });
  });
}
