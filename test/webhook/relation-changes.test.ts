import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { readWebhookSettings } from '../../src/webhook/webhook.ts';
import { engineUrls } from '../support/databases.ts';
import { startReceiver } from '../support/receiver.ts';
import { startWebhooks } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ENV = { INTERFACES: 'rest,webhook,management' };

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

const moduleOf = (url: string, forward: string, handlers = '') => `
const to = (path, rules = {}) => ({ url: '${url}' + path, allowPrivate: true, ...rules });
const tell = (path) => async (delivery) => {
  await fetch('${url}' + path, { method: 'POST', body: JSON.stringify(delivery) });
};
export default {
  relations: {
    authors: { columns: { name: { type: 'text', max: 50 } } },
    books: {
      columns: {
        title: { type: 'text', max: 50 },
        author: { type: 'reference', to: 'authors', onDelete: 'cascade' },
      },
    },
    notes: { columns: { text: { type: 'text', max: 50 } }, changes: false },
  },
  webhook: { forward: { ${forward} }, handlers: { ${handlers} } },
};
`;

/** What a path was told: the type of each delivery, and the key and a text of the row. */
const told = (receiver: Receiver, path: string) =>
  receiver.at(path).map(({ body }) => {
    const { type, data } = JSON.parse(body.toString());
    return `${type} ${data.key} ${data.row.name ?? data.row.title}`;
  });

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  describe(`forwarding and handling of changes of relations on ${engine}`, () => {
    test('addresses and handlers get those that they want, in order, and nothing from a sender', async () => {
      await using receiver = await startReceiver();
      const module = moduleOf(
        receiver.url,
        `books: to('/books', { changes: { books: true } }),
         gone: to('/gone', { changes: { authors: ['deleted'], books: ['deleted'] }, events: ['left'] }),
         all: to('/all')`,
        `'author.created': tell('/handled'), 'book.deleted': tell('/handled')`,
      );
      await using door = await startWebhooks(await databaseUrl(), module, ENV);
      const { rest = '' } = door.service.urls;
      const send = async (method: string, path: string, body?: unknown) => {
        const reply = await fetch(`${rest}${path}`, { method, body: body ? JSON.stringify(body) : null });
        assert.ok(reply.ok, await reply.text());
      };
      await send('POST', '/authors', { name: 'ann' });
      await send('POST', '/books', { title: 'a', author_id: 1 });
      await send('PATCH', '/books/1', { title: 'b' });
      await send('POST', '/notes', { text: 'unrecorded' });
      await send('DELETE', '/authors/1');
      await door.post({ event: 'book.created', data: { key: '9', row: { title: 'sent' } } });
      await waitFor('books', () => receiver.at('/books').length === 3);
      await waitFor('the removed ones', () => receiver.at('/gone').length === 2);
      await waitFor('the handlers', () => receiver.at('/handled').length === 2);
      await waitFor('what was sent', () => receiver.at('/all').length === 1);
      assert.deepEqual(told(receiver, '/books'), [
        'book.created 1 a',
        'book.updated 1 b',
        'book.deleted 1 b',
      ]);
      assert.deepEqual(told(receiver, '/gone').toSorted(), ['author.deleted 1 ann', 'book.deleted 1 b']);
      const handled = receiver.at('/handled').map(({ body }) => JSON.parse(body.toString()));
      const created = handled.find(({ event }) => event === 'author.created');
      assert.equal(created?.source, 'portico:changes');
      const { position, ...rest2 } = created?.data ?? {};
      assert.equal(typeof position, 'number');
      assert.deepEqual(rest2, {
        relation: 'authors',
        type: 'created',
        key: '1',
        row: { id: 1, name: 'ann' },
      });
    });

    test('changes of one row wait for each other, and a restart continues behind the last one', async () => {
      await using receiver = await startReceiver({
        '/books': (response, attempt) => response.writeHead(attempt < 3 ? 500 : 204).end(),
      });
      const url = await databaseUrl();
      const module = moduleOf(receiver.url, `books: to('/books', { changes: { books: true } })`);
      {
        await using door = await startWebhooks(url, module, { ...ENV, WEBHOOK_BACKOFF: '10' });
        const { rest } = door.service.urls;
        const post = (path: string, body: unknown) =>
          fetch(`${rest}${path}`, { method: 'POST', body: JSON.stringify(body) });
        await post('/authors', { name: 'ann' });
        await post('/books', { title: 'a', author_id: 1 });
        await fetch(`${rest}/books/1`, { method: 'DELETE' });
        await waitFor('the deletion', () => told(receiver, '/books').includes('book.deleted 1 a'));
      }
      assert.deepEqual(told(receiver, '/books'), [
        ...Array.from({ length: 3 }, () => 'book.created 1 a'),
        'book.deleted 1 a',
      ]);
      await using again = await startWebhooks(url, module, ENV);
      const body = JSON.stringify({ title: 'c', author_id: 1 });
      await fetch(`${again.service.urls.rest}/books`, { method: 'POST', body });
      await waitFor('the next one', () => told(receiver, '/books').includes('book.created 2 c'));
      assert.equal(receiver.at('/books').length, 5);
    });
  });
}

test('changes of what is no relation, or records none, are refused by name', async () => {
  await using folder = await temporaryFolder();
  const forward = `a: to('/a', { changes: { boks: true, notes: ['created'], users: true } }),
    b: to('/b', { changes: { books: ['removed'] } }), c: to('/c', { changes: { authors: true } })`;
  await writeFile(join(folder.path, 'portico.config.mjs'), moduleOf('http://127.0.0.1:1', forward));
  const loaded = loadConfig({
    argv: [],
    env: {},
    cwd: folder.path,
    check: (code, name, resolve, problems, options) => {
      readWebhookSettings(code, name, resolve, problems, options);
    },
  });
  await assert.rejects(loaded, ({ message }: Error) => {
    assert.match(message, /webhook\.forward\.a\.changes\.boks is no declared relation; did you mean books\?/);
    assert.match(message, /webhook\.forward\.a\.changes\.notes has "changes": false/);
    assert.match(message, /webhook\.forward\.a\.changes\.users: write users: true/);
    assert.match(message, /webhook\.forward\.b\.changes must be an object of relations such as/);
    assert.doesNotMatch(message, /forward\.c/);
    return true;
  });
});
