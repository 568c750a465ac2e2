import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ExportPage, rowPages } from './row-exports.ts';

const ALL = { format: 'ndjson', where: { is: 'and', all: [] }, fields: undefined } as const;

/** Pages of one row each, up to a key; `asked` has the keys after which they were read. */
function pagesUpTo(last: number, asked: number[]) {
  return {
    async page(_selection: object, { after }: { readonly after: readonly unknown[] | undefined }) {
      const key = Number(after?.[0] ?? 0) + 1;
      asked.push(key);
      if (key > last) throw new Error(`there is no page ${key}`);
      const isEmpty = key === 2;
      const page: ExportPage = {
        bytes: new Uint8Array(),
        count: isEmpty ? 0 : 1,
        last: [key],
        more: true,
      };
      return page;
    },
  };
}

describe('the pages of an export', () => {
  test('one is read while the caller takes the one before, and no other', async () => {
    const asked: number[] = [];
    const pages = rowPages(pagesUpTo(9, asked), ALL, { after: undefined, upTo: [9] });
    assert.deepEqual((await pages.next()).value?.last, [1]);
    assert.deepEqual(asked, [1, 2]);
    assert.deepEqual((await pages.next()).value?.last, [2]);
    assert.deepEqual(asked, [1, 2, 3]);
  });

  test('a caller may end an export between two pages that have no rows', async () => {
    const asked: number[] = [];
    const page = async (
      _selection: object,
      { after }: { readonly after: readonly unknown[] | undefined },
    ) => {
      const key = Number(after?.[0] ?? 0) + 1;
      asked.push(key);
      // With an end, so that the test would fail rather than never end.
      return { bytes: new Uint8Array(), count: 0, last: [key], more: key < 1_000 };
    };
    const pages = rowPages({ page }, ALL, { after: undefined, upTo: [9] });
    await pages.next();
    await pages.return();
    assert.deepEqual(asked, [1, 2]);
  });

  test('a failure comes after the pages that were read, and an end before it makes it nothing', async () => {
    const read = rowPages(pagesUpTo(1, []), ALL, { after: undefined, upTo: [9] });
    assert.deepEqual((await read.next()).value?.last, [1]);
    await assert.rejects(read.next(), /there is no page 2/);
    const left = rowPages(pagesUpTo(1, []), ALL, { after: undefined, upTo: [9] });
    await left.next();
    await left.return();
    // A rejection without a handler would end the process now.
    await new Promise(setImmediate);
  });
});
