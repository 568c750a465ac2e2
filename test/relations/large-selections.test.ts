import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRowList } from '../../src/relations/rows/row-lists.ts';
import type { RowStore } from '../../src/relations/rows/rows.ts';
import { SelectionLimitError } from '../../src/relations/selections/limits.ts';
import { engines } from '../support/databases.ts';
import { relationsOf } from '../support/relations/shop.ts';

const AUTHORS = 200;
const BOOKS = 260;
const NOTE = 'n'.repeat(400);
/**
 * Processor time that one turn of the event loop may take, in milliseconds: three times the promised one, for a machine that
 * is slow or busy. All rows in one turn take longer.
 */
const TURN = 150;

const relations = relationsOf({
  authors: { columns: { name: { type: 'text', max: 60 } } },
  books: {
    columns: {
      title: { type: 'text', max: 60 },
      note: { type: 'text', max: 4_000 },
      author: { type: 'reference', to: 'authors' },
    },
  },
});
const byName = new Map(relations.map((relation) => [relation.name, relation]));

/** The longest turn of the event loop while some work runs, in milliseconds of processor time. */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  let [longest, isOver] = [0, false];
  let last = process.threadCpuUsage();
  const turn = () => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, (now.user + now.system - last.user - last.system) / 1_000);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return longest;
}

for (const [engine, open] of Object.entries(engines)) {
  if (engine === 'sqlite in memory') continue;
  test(`many embedded rows are read in short turns or refused, on ${engine}`, async () => {
    await using store = await open();
    const { stores } = await store.current.openRelations(relations);
    const [authors, books] = [stores.get('authors'), stores.get('books')];
    assert.ok(authors !== undefined && books !== undefined);
    await authors.create(Array.from({ length: AUTHORS }, (_, i) => [null, `author ${i}`]));
    const rows = Array.from({ length: AUTHORS * BOOKS }, (_, i) => [
      null,
      `book ${i}`,
      NOTE,
      (i % AUTHORS) + 1,
    ]);
    const rule = { isWhole: false, checkpoint: undefined } as const;
    for (let at = 0; at < rows.length; at += 1_000) await books.importRows(rows.slice(at, at + 1_000), rule);

    const page = (of: RowStore, query: Readonly<Record<string, string>>) => {
      const shape = readRowList(byName, of.relation, query, false);
      return async () => of.lists.page({ shape, limit: shape.limit, next: undefined, backwards: false });
    };
    const refused = (limit: SelectionLimitError['limit'], query: Readonly<Record<string, string>>) =>
      assert.rejects(page(authors, query), (error) => {
        assert.ok(error instanceof SelectionLimitError);
        assert.equal(error.limit, limit);
        return true;
      });

    const all = page(authors, { fields: 'name,books(*)', limit: '190', 'embed.books.limit': '180' });
    const { json } = await all();
    const found = JSON.parse(`[${json}]`) as { readonly books: { readonly title: string }[] }[];
    assert.deepEqual([found.length, found.at(-1)?.books.length], [190, 180]);
    assert.equal(found[1]?.books[2]?.title, `book ${2 * AUTHORS + 1}`);
    const turns: number[] = [];
    // Another process may take the caches of the processor during one of them.
    for (let tries = 3; tries > 0; tries--) {
      turns.push(
        await longestTurn(async () => {
          await all();
        }),
      );
    }
    assert.ok(Math.min(...turns) < TURN, `${turns}`);

    await refused('rows', { fields: 'books(id)', limit: '200' });
    await refused('bytes', { fields: 'books(*)', limit: '190' });
    await refused('scan', {
      fields: 'books(id)',
      limit: '200',
      'embed.books.sort': 'title',
      'embed.books.limit': '1',
    });
    // A row that many refer to is read once, and counts as often as it is written.
    const one = await page(books, { fields: 'author(name)', limit: '1000' })();
    assert.equal(one.count, 1_000);
  });
}
