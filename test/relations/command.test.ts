import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LIBRARY = {
  authors: { columns: { name: { type: 'text', max: 120 } }, indexes: [['name']] },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      price: { type: 'decimal', precision: 10, scale: 2, default: '9.90' },
      author: { type: 'reference', to: 'authors' },
    },
    unique: [['author_id', 'title']],
  },
};

const engines: Readonly<Record<string, () => Promise<string | undefined>>> = {
  sqlite: async () => undefined,
  ...(withoutPostgres === undefined ? { postgres: postgresDatabase } : {}),
};

for (const [engine, urlOf] of Object.entries(engines)) {
  test(`a service with portico.config.json serves its relations from tables of its own, on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    const url = await urlOf();
    const declare = (config: object) =>
      writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(config));
    const start = (env = {}) =>
      startPortico({
        cwd: folder.path,
        env: { INTERFACES: 'rest', ...(url === undefined ? {} : { DATABASE_URL: url }), ...env },
      });
    await declare({ relations: LIBRARY });
    {
      await using portico = start();
      await portico.ready();
      const send = (path: string, body: unknown) =>
        fetch(`${portico.urls.rest}${path}`, { method: 'POST', body: JSON.stringify(body) });
      assert.equal((await send('/authors', { name: 'Jane Austen' })).status, 201);
      const created = await send('/books', { title: 'Emma', author_id: 1 });
      assert.equal(await created.text(), '{"id":1,"title":"Emma","price":"9.90","author_id":1}');
    }
    // A further relation is added to the tables that are there; a token has the scopes of one of them.
    const loans = {
      key: ['book_id', 'reader'],
      columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 60 } },
    };
    const secret = 'a-secret-of-32-characters-or-more';
    await declare({
      relations: { ...LIBRARY, loans },
      api: { required: 'all', tokens: { librarian: { secret, scopes: ['books:read', 'loans:write'] } } },
    });
    {
      await using portico = start();
      await portico.ready();
      const ask = async (method: string, path: string, body?: unknown) => {
        const sent = body === undefined ? null : JSON.stringify(body);
        const headers = { authorization: `Bearer ${secret}` };
        const response = await fetch(`${portico.urls.rest}${path}`, { method, headers, body: sent });
        return { status: response.status, text: await response.text() };
      };
      assert.deepEqual(await ask('GET', '/books?author.name:prefix=Jane&fields=title'), {
        status: 200,
        text: '[{"title":"Emma"}]',
      });
      assert.equal((await ask('GET', '/books/1')).status, 200);
      const authors = await ask('GET', '/authors');
      assert.equal(authors.status, 403);
      assert.match(authors.text, /"code":"LACKS_SCOPE"/);
      assert.equal((await ask('PATCH', '/books/1', { title: 'x' })).status, 403);
      const hidden = await ask('POST', '/loans', { book_id: 1, reader: 'ann' });
      assert.deepEqual(hidden, { status: 201, text: '' }, 'who may not read does not see the row');
      assert.equal((await fetch(`${portico.urls.rest}/books/1`)).status, 401);
    }
    const subtitled = { ...LIBRARY.books.columns, subtitle: { type: 'text', nullable: true } };
    for (const [relations, code, problem] of [
      [
        { ...LIBRARY, books: { ...LIBRARY.books, columns: { ...subtitled, titel: { type: 'txt' } } } },
        2,
        /relations\.books/,
      ],
      [
        { ...LIBRARY, authors: { columns: { name: { type: 'text', max: 5 } } } },
        1,
        /"portico migrate --check"/,
      ],
    ] as const) {
      await declare({ relations });
      await using portico = start();
      assert.equal(await portico.exited(), code, portico.stderr);
      assert.match(portico.stderr, problem);
    }
    {
      await declare({ relations: { ...LIBRARY, books: { ...LIBRARY.books, columns: subtitled } } });
      await using portico = start();
      await portico.ready();
      const book = await fetch(`${portico.urls.rest}/books/1?fields=title,subtitle`);
      assert.equal(await book.text(), '{"title":"Emma","subtitle":null}', 'a nullable column is added');
    }
    await declare({ relations: LIBRARY });
    {
      await using portico = start();
      await portico.ready();
      const warning = portico.logs().find(({ undeclared }) => undeclared !== undefined);
      assert.deepEqual(warning?.undeclared, ['books.subtitle', 'loans']);
    }
    await declare({});
    await using portico = start();
    await portico.ready();
    assert.equal(
      (await fetch(`${portico.urls.rest}/books`)).status,
      404,
      'without a declaration nothing is served',
    );
  });
}
