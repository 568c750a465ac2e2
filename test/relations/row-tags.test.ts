import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { createService } from '../../src/app/service.ts';
import { engineUrls } from '../support/databases.ts';
import { captureLog } from '../support/log-capture.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const title = { type: 'text', max: 20 };
const price = { type: 'decimal', precision: 8, scale: 2, nullable: true };

/** The columns of a relation before a migration and after it, and whether the JSON of its rows is another then. */
const migrations: readonly (readonly [string, object, object, boolean])[] = [
  ['a new column', { title }, { title, price }, true],
  ['a new name', { title }, { label: { ...title, was: 'title' } }, true],
  [
    'another type',
    { title, n: { type: 'integer', default: 7 } },
    { title, n: { type: 'bigint', default: '7' } },
    true,
  ],
  ['another scale', { title, price }, { title, price: { ...price, scale: 3 } }, true],
  ['a column that is not declared', { title, price }, { title }, true],
  ['a wider bound', { title }, { title: { ...title, max: 30 } }, false],
  ['an index', { title }, { title: { ...title, unique: true } }, false],
];

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  /** Serves a declaration while `use` talks to the REST door. */
  async function served(url: string, columns: object, use: (rest: string) => Promise<void>): Promise<void> {
    await using folder = await temporaryFolder();
    const relations = { books: { columns }, users: { columns: { phone: { ...title, nullable: true } } } };
    const limits = { database: { relationSteps: 'all-but-drops' } };
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations, limits }));
    const env = { DATABASE_URL: url, REST_PORT: '0', INTERFACES: 'rest', SHUTDOWN_PRE_STOP_DELAY: '0' };
    const config = await loadConfig({ argv: [], env, cwd: folder.path });
    const service = await createService(config, { logStream: captureLog().stream });
    try {
      await use(String((await service.listen()).rest));
    } finally {
      await service.stop();
    }
  }

  async function tagAt(url: string): Promise<string> {
    const reply = await fetch(url);
    assert.equal(reply.status, 200, await reply.text());
    return String(reply.headers.get('etag'));
  }

  for (const [what, before, after, isAnother] of migrations) {
    test(`the tag of a row ${isAnother ? 'changes' : 'stays'} with ${what} on ${engine}`, async () => {
      const url = await databaseUrl();
      let tag = '';
      let users = '';
      await served(url, before, async (rest) => {
        const created = await fetch(`${rest}/books`, { method: 'POST', body: '{"title":"Emma"}' });
        tag = String(created.headers.get('etag'));
        assert.match(tag, /^"\d+\.[0-9a-f]{8}"$/);
        assert.equal(await tagAt(`${rest}/books/1`), tag);
        const user = await fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
        users = String(user.headers.get('etag'));
        assert.match(users, /^"\d+"$/, 'users have their version alone');
      });
      await served(url, after, async (rest) => {
        const now = await tagAt(`${rest}/books/1`);
        assert.equal(now !== tag, isAnother);
        assert.equal(now.split('.')[0], tag.split('.')[0], 'the version is the same');
        assert.equal(await tagAt(`${rest}/users/1`), users);
        const known = (value: string) => fetch(`${rest}/books/1`, { headers: { 'if-none-match': value } });
        assert.deepEqual(
          [(await known(tag)).status, (await known(now)).status],
          [isAnother ? 200 : 304, 304],
        );
        const remove = (value: string) =>
          fetch(`${rest}/books/1`, { method: 'DELETE', headers: { 'if-match': value } });
        if (isAnother) assert.equal((await remove(tag)).status, 412);
        const [version = ''] = now.split('.');
        assert.equal((await remove(`${version}"`)).status, 412, 'a version alone is not the tag of a row');
        const batch = {
          writes: [{ method: 'DELETE', path: '/books/1', headers: { 'If-Match': now } }],
        };
        const removed = await fetch(`${rest}/_batch`, { method: 'POST', body: JSON.stringify(batch) });
        assert.equal(removed.status, 200, await removed.text());
      });
    });
  }
}
