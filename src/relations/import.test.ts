import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { IMPORT_BATCH, ImportBeginning, type ImportOutcome, importLines } from './import.ts';
import { ImportError } from './import-readers.ts';
import type { NewUser } from './user.ts';
import { userImports } from './user-stores.ts';

const LINES = 500;
const users = { identify: ({ name, email }: NewUser) => `${name}\0${email}` };
/** Chunks that may be read before reading has to stop: a batch is stored, another one waits. */
const MOST = (2 * IMPORT_BATCH) / LINES + 2;

/** An endless source, and a store that stores a batch when it is let. */
function setUp({ chunks = Number.POSITIVE_INFINITY, end = () => {} } = {}) {
  const chunk = Buffer.from('{"name":"n","email":"e@x"}\n'.repeat(LINES));
  const batches: (readonly NewUser[])[] = [];
  const waiting: (() => void)[] = [];
  let read = 0;
  let next = 0;
  const target = userImports({
    importUsers(batch) {
      batches.push(batch);
      const { promise, resolve } = Promise.withResolvers<readonly number[]>();
      waiting.push(() => resolve(batch.map(() => ++next)));
      return promise;
    },
    importAll: () => assert.fail('it is not one transaction'),
  });
  async function* source() {
    for (; read < chunks; read++) {
      await nextTick();
      yield chunk;
    }
    end();
  }
  const request = { target, chunks: source(), format: 'ndjson' } as const;
  return {
    outcomes: importLines(request),
    batches,
    read: () => read,
    /** Ends the oldest write. */
    store: () => waiting.shift()?.(),
    async settle() {
      for (let i = 0; i < 50; i++) await nextTick();
    },
  };
}

test('reading stops while a batch is stored and another one waits', async () => {
  const { outcomes, batches, read, store, settle } = setUp();
  const first = outcomes.next();
  await settle();
  assert.equal(batches.length, 1);
  const before = read();
  assert.ok(before <= MOST, `${before} chunks were read`);
  store();
  const { value = [] } = await first;
  assert.deepEqual((value as readonly ImportOutcome<number>[])[0], { line: 1, id: 1 });
  // Nobody takes more: one batch is on its way, and nothing is read.
  await settle();
  assert.equal(batches.length, 2);
  assert.equal(batches[1]?.length, IMPORT_BATCH);
  assert.ok(read() <= before + 1, `${read()} chunks were read`);
  await outcomes.return(undefined);
});

test('what came before a source failed is stored, in order, and then it is told', async () => {
  const { outcomes, store, settle } = setUp({
    chunks: 7,
    end() {
      throw new ImportError('INVALID_IMPORT', 'broken off');
    },
  });
  const stored: ImportOutcome<number>[] = [];
  const all = (async () => {
    for await (const batch of outcomes) stored.push(...batch);
  })();
  all.catch(() => {});
  for (let i = 0; i < 7; i++) {
    await settle();
    store();
  }
  await assert.rejects(all, /broken off/);
  assert.deepEqual(
    stored,
    Array.from({ length: 7 * LINES }, (_, i) => ({ line: i + 1, id: i + 1 })),
  );
});

test('a beginning is the same however its lines come in batches, and another one is refused', () => {
  const entries = Array.from({ length: 9 }, (_, i) => ({
    line: i + 1,
    row: { name: `n${i}`, email: 'e@x' },
    size: 10,
  }));
  const whole = new ImportBeginning({ line: 0, digest: undefined }, users);
  const digest = whole.extend(entries);
  const inParts = new ImportBeginning({ line: 0, digest: undefined }, users);
  inParts.extend(entries.slice(0, 4));
  assert.equal(inParts.extend(entries.slice(4)), digest);

  const other = { line: 1, row: { name: 'other', email: 'e@x' }, size: 10 };
  const again = new ImportBeginning({ line: 9, digest }, users);
  assert.ok(again.passes(other));
  assert.throws(() => again.requireSame(), { code: 'IMPORT_KEY_REUSED' });
});
