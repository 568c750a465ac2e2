import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';

const RELATIONS = `{
  books: { columns: { title: { type: 'text', max: 200 } } },
  loans: { key: ['book_id', 'reader'], columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 60 } } },
}`;

for (const fastPath of ['true', 'false']) {
  test(`each relation has its own routes, measured and listed by their templates; fast path: ${fastPath}`, async () => {
    const module = `export default { relations: ${RELATIONS}, management: { include: ['mappings', 'metrics'] } };`;
    await using service = await startTestService({
      module,
      database: 'file',
      env: { HTTP_FAST_PATH: fastPath },
      listens: true,
    });
    const { rest, management } = service.urls;
    const ask = (method: string, path: string, body?: object) =>
      fetch(`${rest}${path}`, { method, body: body === undefined ? null : JSON.stringify(body) });
    const statusOf = async (method: string, path: string, body?: object) => {
      const reply = await ask(method, path, body);
      await reply.arrayBuffer();
      return reply.status;
    };
    assert.equal(await statusOf('POST', '/books', { title: 'Emma' }), 201);
    for (const path of [
      '/books',
      '/books/',
      '/books/1',
      '/books/1/',
      '/%62ooks/1',
      '/loans',
      '/books?limit=1',
    ])
      for (const method of ['GET', 'HEAD'])
        assert.equal(await statusOf(method, path), 200, `${method} ${path}`);
    assert.equal(await statusOf('PATCH', '/books/1/', { title: 'Persuasion' }), 200);
    assert.equal(await statusOf('PUT', '/loans/1,ann', {}), 201);
    for (const path of ['/book', '/bookss', '/Books', '/books/1/1', '/xbooks/1', '/%2Fbooks'])
      assert.equal(await statusOf('GET', path), 404, path);
    const refused = await ask('PUT', '/books', {});
    assert.equal(refused.status, 405);
    assert.match(refused.headers.get('allow') ?? '', /GET, HEAD, POST, DELETE/);

    const read = async (path: string) =>
      (await (await fetch(`${management}/actuator/${path}`)).json()) as {
        readonly contexts: unknown;
        readonly measurements: readonly { readonly value: number }[];
      };
    const { contexts } = await read('mappings');
    const mappings = JSON.stringify(contexts);
    for (const path of ['/books', '/books/:key', '/loans', '/loans/:key'])
      assert.ok(mappings.includes(`"${path}"`), path);
    assert.doesNotMatch(mappings, /portico_name/);
    const count = async (uri: string, method: string) => {
      const { measurements } = await read(`metrics/http.server.requests?tag=uri:${uri}&tag=method:${method}`);
      return measurements[0]?.value;
    };
    assert.equal(await count('/books/:key', 'GET'), 2);
    assert.equal(await count('/books/:key/', 'HEAD'), 1);
    assert.equal(await count('/books', 'POST'), 1);
    assert.equal(await count('/loans', 'GET'), 1);
    assert.equal(await count('/loans/:key', 'PUT'), 1);
    assert.equal(await count('none', 'GET'), 6);
  });
}

test('a setup that adds a path of a relation ends the start, which names the path', async () => {
  const module = `export default { relations: ${RELATIONS}, rest: { setup(app) { app.get('/loans', () => 'mine'); } } };`;
  await using service = await startTestService({ module, database: 'file' });
  await assert.rejects(service.listen(), {
    message: /rest\.setup adds GET \/loans, which the door has already; choose another path$/,
  });
});
