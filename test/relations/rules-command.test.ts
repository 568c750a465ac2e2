import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'staff-token-0123456789';
const CONFIG = {
  relations: {
    authors: { columns: { name: { type: 'text', max: 120 } } },
    books: {
      columns: {
        title: { type: 'text', max: 200 },
        cost: { type: 'integer', nullable: true, read: { scope: 'staff' }, write: { scope: 'staff' } },
        author: { type: 'reference', to: 'authors' },
      },
      rules: {
        read: [{ scope: 'staff' }, { where: { author: { name: { caller: '/sub' } } } }],
        create: { scope: 'staff' },
      },
    },
  },
  api: { tokens: { staff: { secret: TOKEN, scopes: ['staff'] } } },
};

test('a command explains what the rules let a caller do', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(CONFIG));
  await writeFile(join(folder.path, 'ann.json'), '{"sub":"ann"}');
  await writeFile(join(folder.path, 'staff.json'), '{"scope":"staff"}');
  await writeFile(join(folder.path, 'list.json'), '[]');
  const run = (...args: readonly string[]) => runPortico(['rules', 'explain', ...args], { cwd: folder.path });
  const ann = await run('books', 'read', '--as', 'ann.json', '--json');
  assert.deepEqual(JSON.parse(ann.stdout), {
    relation: 'books',
    operation: 'read',
    condition: { author: { name: 'ann' } },
    sql: 'EXISTS (SELECT 1 FROM "authors" AS x1 WHERE x1."id" = r."author_id" AND x1."name" = ?1)',
    values: ['ann'],
    hidden: ['cost'],
  });
  const staff = await run('books', 'read', '--as', 'staff.json');
  assert.equal(staff.stdout, 'The caller may read every row\nWHERE 1 = 1\n');
  const anonymous = await run('books', 'create');
  assert.equal(
    anonymous.stdout,
    'The caller may create no row\nWHERE 1 = 0\nColumns that it may not write: cost\n',
  );
  const postgres = await run(
    'books',
    'read',
    '--as',
    'ann.json',
    '--database-url',
    'postgres://127.0.0.1/none',
  );
  assert.match(postgres.stdout, /x1\."name" = \$1::text/);
  for (const [args, message] of [
    [['bokks', 'read'], /There is no relation "bokks"; did you mean books\?/],
    [['books', 'list'], /one of read, create, update, delete, not "list"/],
    [['books', 'read', '--as', 'none.json'], /none\.json cannot be read as JSON/],
    [['books', 'read', '--as', 'list.json'], /must have a JSON object of claims/],
  ] as const) {
    const refused = await run(...args);
    assert.deepEqual([refused.code, message.test(refused.stderr)], [2, true], refused.stderr);
  }
});

test('a service with rules knows callers although no operation needs credentials, and warns of relations without rules', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(CONFIG));
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest' } });
  await portico.ready();
  assert.match(portico.stdout, /some relations have rules and these have none/);
  const rest = portico.urls.rest ?? '';
  const send = (method: string, path: string, body?: unknown, headers = {}) =>
    fetch(`${rest}${path}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  const staff = { authorization: `Bearer ${TOKEN}` };
  assert.equal((await send('POST', '/authors', { name: 'ann' })).status, 201);
  assert.equal((await send('POST', '/books', { title: 'x', author_id: 1 })).status, 401);
  assert.equal((await send('POST', '/books', { title: 'x', author_id: 1, cost: 3 }, staff)).status, 201);
  assert.deepEqual(await (await send('GET', '/books', undefined, staff)).json(), [
    { id: 1, title: 'x', cost: 3, author_id: 1 },
  ]);
  assert.equal((await send('GET', '/books')).status, 401);
  assert.equal(
    (await send('GET', '/books', undefined, { authorization: 'Bearer wrong-token-0123456789' })).status,
    401,
  );
  // Users are served as without rules, whatever a request says about its caller.
  assert.equal(
    (await send('GET', '/users', undefined, { authorization: 'Bearer wrong-token-0123456789' })).status,
    200,
  );
});
