import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRelations } from '../../src/config/schema/relations.ts';
import { relationDoors } from '../support/relations/relation-door.ts';
import { LIBRARY } from '../support/relations/relations.ts';

const problems: string[] = [];
const NOTES = readRelations(
  {
    path: 'relations',
    value: {
      notes: {
        columns: {
          text: { type: 'text', max: 20 },
          author: { type: 'text', max: 20, default: 'caller' },
          editor: { type: 'text', max: 20, default: 'caller', nullable: true },
        },
      },
      labels: { key: ['name'], columns: { name: { type: 'text', max: 20 } } },
    },
  },
  problems,
);

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`refusals of rows on ${engine}`, () => {
    test('a default that is the caller needs a caller, unless the column may be null', async () => {
      assert.deepEqual(problems, []);
      await using door = await open(NOTES);
      const refused = await door.send('POST', '/notes', { text: 'a' });
      const detail = '"author" is missing, and the request has no caller to take it from';
      assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_ROW']);
      assert.deepEqual(refused.body.errors, [{ detail, pointer: '#/author' }]);
      const csv = await door.send('POST', '/notes', 'text\na\n', { 'content-type': 'text/csv' });
      assert.match(csv.text, /"code":"INVALID_ROW".*no caller[\s\S]*{"created":0,"refused":1}/);
      const stored = await door.send('POST', '/notes', { text: 'a', author: 'ann' });
      assert.deepEqual(stored.body, { id: stored.body.id, text: 'a', author: 'ann', editor: null });
    });

    test('the name of a caller that its column cannot have is refused', async () => {
      const secret = 'a-secret-of-more-than-thirty-two-characters';
      const scopes = ['notes:write', 'notes:read'];
      const tokens = { 'a-librarian-with-a-long-name': { secret, scopes } };
      await using door = await open(NOTES, { api: { required: 'all', scopes, tokens } });
      const refused = await door.send('POST', '/notes', { text: 'a' }, { authorization: `Bearer ${secret}` });
      assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_ROW']);
      assert.match(refused.body.errors[0].detail, /^"author" would be the name of the caller, but must have/);
    });

    test('a refusal for a limit names the limit', async () => {
      await using door = await open(LIBRARY);
      let deep: unknown = { title: 'x' };
      for (let i = 0; i < 21; i++) deep = { not: deep };
      const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `${i}` }));
      const where = (tree: unknown) => `where=${encodeURIComponent(JSON.stringify(tree))}`;
      const lists = {
        depth: where(deep),
        values: where({ id: { in: many(1_001).map((_, i) => i) } }),
        parameters: many(201)
          .map(({ name }) => `p${name}=1`)
          .join('&'),
        levels: 'fields=author(books(author(books(author(name)))))',
        columns: 'aggregate=count&group=id,title,pages,price',
      };
      for (const [limit, query] of Object.entries(lists)) {
        const refused = await door.get(`/books?${query}`);
        assert.equal(refused.status, 400, limit);
        assert.ok(refused.body.detail.includes(`(${limit})`), `${limit}: ${refused.text}`);
      }
      const writes = many(101).map((body) => ({ method: 'POST', path: '/authors', body }));
      for (const [limit, path, body] of [
        ['array rows', '/authors', many(1_001)],
        ['batch writes', '/_batch', { writes }],
        ['rows', '/authors', { name: 'x', books: many(1_001).map(({ name }) => ({ title: name })) }],
      ] as const) {
        const refused = await door.send('POST', path, body);
        assert.deepEqual([refused.status, refused.body.code], [400, 'LIMIT_EXCEEDED'], limit);
        assert.ok(refused.body.detail.includes(`(${limit})`), `${limit}: ${refused.text}`);
      }
    });

    test('a key that no path could have is refused, and a path without a key changes nothing', async () => {
      await using door = await open(NOTES);
      for (const name of ['', '.', '..']) {
        const refused = await door.send('POST', '/labels', [{ name: 'good' }, { name }]);
        assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_ROW'], name);
        assert.equal(refused.body.errors[0].pointer, '#/1/name');
        assert.match(
          refused.body.errors[0].detail,
          /must not be "\.?\.?" as the key, which stands in the path/,
        );
        const csv = await door.send('POST', '/labels', `name\n"${name}"\n`, { 'content-type': 'text/csv' });
        assert.match(csv.text, /{"created":0,"refused":1}/);
        const batch = await door.send('POST', '/_batch', {
          writes: [{ method: 'POST', path: '/labels', body: { name } }],
        });
        assert.deepEqual([batch.status, batch.body.errors[0].pointer], [400, '#/writes/0/body/name']);
      }
      for (const method of ['PUT', 'PATCH']) {
        const refused = await door.send(method, '/labels/', {});
        assert.deepEqual([refused.status, refused.body.code], [405, 'METHOD_NOT_ALLOWED'], method);
        assert.equal(refused.headers.get('allow'), 'GET, HEAD, POST, DELETE, OPTIONS');
      }
      assert.deepEqual((await door.get('/labels')).body, []);
    });

    test('a write to a row refuses every parameter, in a batch too', async () => {
      await using door = await open(NOTES);
      await door.send('POST', '/labels', { name: 'a' });
      for (const [method, body] of [
        ['PATCH', {}],
        ['PUT', {}],
        ['DELETE', undefined],
      ] as const) {
        const refused = await door.send(method, '/labels/a?name=b', body);
        assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_PARAMETER'], method);
        const detail = 'There is no parameter "name" for a write to one row';
        assert.deepEqual(refused.body.errors, [{ detail, parameter: 'name' }]);
        const batch = await door.send('POST', '/_batch', {
          writes: [{ method, path: '/labels/a?name=b', body }],
        });
        assert.deepEqual([batch.status, batch.body.errors[0].pointer], [400, '#/writes/0/path'], method);
      }
      assert.equal((await door.get('/labels/a')).status, 200);
    });

    test('a put that only creates tells a row that is there from one whose number it may not give', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', { name: 'Ann' });
      const onlyNew = { 'if-none-match': '*' };
      assert.equal((await door.send('PUT', '/authors/1', { name: 'Bob' }, onlyNew)).status, 412);
      assert.equal((await door.send('PUT', '/authors/2', { name: 'Bob' }, onlyNew)).status, 404);
    });
  });
}
