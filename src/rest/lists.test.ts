import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Reply } from '@portico/transport';
import fc from 'fast-check';
import { isPieces } from '../../packages/transport/reply/reply-streams.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import type { UserFormat, UserPage } from '../relations/lists.ts';
import { DatabaseUserStore } from '../relations/user-stores.ts';
import { userLister } from './lists.ts';

/** Users per page of the store. */
const PAGE = 50;

const listUsers = (store: DatabaseUserStore) => userLister(store, 'json')();

/** A store that holds ids only, and answers at once or a turn later like the two engines. */
class IdStore extends DatabaseUserStore {
  readonly lists = undefined as never;
  readonly ids: Set<number>;
  pages = 0;
  /** Called before a page is read. */
  onPage = (): void => {};
  readonly #isSlow: boolean;
  #next: number;

  constructor(count: number, isSlow = false) {
    super();
    this.ids = new Set(Array.from({ length: count }, (_, i) => i + 1));
    this.#next = count + 1;
    this.#isSlow = isSlow;
  }

  append(): number {
    this.ids.add(this.#next);
    return this.#next++;
  }

  page(_format: UserFormat, after: number, upTo: number): MaybePromise<UserPage> {
    this.pages++;
    this.onPage();
    const found = [...this.ids].filter((id) => id > after && id <= upTo);
    const ids = found.slice(0, PAGE);
    const text = ids.map((id) => `,${JSON.stringify({ id, name: 'n', email: 'e@x' })}`).join('');
    return this.#answer({
      bytes: Buffer.from(text),
      count: ids.length,
      lastId: ids.at(-1) ?? after,
      more: found.length > PAGE,
      state: String(this.#next),
    });
  }

  lastId(): MaybePromise<number> {
    return this.#answer(Math.max(0, ...this.ids));
  }

  #answer<T>(value: T): MaybePromise<T> {
    return this.#isSlow ? nextTurn(value) : value;
  }

  read(): never {
    assert.fail('a list reads no single user');
  }

  state(): never {
    assert.fail('a list has the state of its first page');
  }

  importUsers(): never {
    assert.fail('a list stores no user');
  }

  importAll(): never {
    assert.fail('a list stores no user');
  }

  beginImport(): never {
    assert.fail('a list stores no user');
  }

  change(): never {
    assert.fail('a list changes no user');
  }

  removeIf(): never {
    assert.fail('a list removes no user');
  }

  create(): never {
    assert.fail('a list creates no user');
  }

  createOnce(): never {
    assert.fail('a list creates no user');
  }

  update(): never {
    assert.fail('a list updates no user');
  }

  remove(): never {
    assert.fail('a list removes no user');
  }
}

/** The ids in a list, read piece by piece; `onPiece` is called after each. */
async function read(list: Reply['body'], onPiece = (): void => {}): Promise<readonly number[]> {
  let text = '';
  for await (const piece of isPieces(list) ? list : [list]) {
    text += String(piece);
    onPiece();
  }
  const { status, data, ...more } = JSON.parse(text) as { status: string; data: readonly { id: number }[] };
  assert.equal(status, 'success');
  assert.deepEqual(more, {});
  return data.map(({ id }) => id);
}

for (const isSlow of [false, true]) {
  const engine = isSlow ? 'an asynchronous engine' : 'a synchronous engine';
  for (const count of [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1]) {
    test(`a list of ${count} users on ${engine} holds them all, in id order`, async () => {
      const store = new IdStore(count, isSlow);
      const list = (await listUsers(store)).body;
      assert.equal(!isPieces(list), count <= PAGE, 'only what fits one page has a length');
      assert.deepEqual(await read(list), [...store.ids]);
    });
  }
}

test('a short list on a synchronous engine costs no turn', () => {
  assert.deepEqual(listUsers(new IdStore(1)), {
    body: Buffer.from('{"status":"success","data":[{"id":1,"name":"n","email":"e@x"}]}'),
    state: '2',
  });
});

test('whoever comes or goes while a long list is read, it is valid and holds who stayed', async () => {
  const change = fc.oneof(
    fc.record({ add: fc.integer({ min: 1, max: PAGE }) }),
    fc.record({ from: fc.integer({ min: 1, max: 3 * PAGE }), remove: fc.integer({ min: 1, max: PAGE + 1 }) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: PAGE, max: 3 * PAGE }),
      fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 4 }),
      fc.boolean(),
      async (count, changes, isSlow) => {
        const store = new IdStore(count, isSlow);
        const stayed = new Set(store.ids);
        const list = (await listUsers(store)).body;
        const plan = changes[Symbol.iterator]();
        const listed = await read(list, () => {
          for (const each of plan.next().value ?? []) {
            if ('add' in each) for (let i = 0; i < each.add; i++) store.append();
            else {
              for (let id = each.from; id < each.from + each.remove; id++) {
                store.ids.delete(id);
                stayed.delete(id);
              }
            }
          }
        });
        assert.deepEqual(
          listed,
          [...new Set(listed)].sort((a, b) => a - b),
          'in order, none twice',
        );
        assert.ok(
          listed.every((id) => id <= count),
          'none that came later',
        );
        assert.deepEqual(
          [...stayed],
          listed.filter((id) => stayed.has(id)),
          'all that stayed',
        );
      },
    ),
    { numRuns: 30 },
  );
});

test('all users gone after the first piece: the list ends there', { timeout: 300_000 }, async () => {
  const store = new IdStore(2 * PAGE);
  const listed = await read((await listUsers(store)).body, () => store.ids.clear());
  assert.ok(listed.length === PAGE || listed.length === 2 * PAGE, 'whole pieces only');
});

test('the store is asked for the next page only when the last one was taken', async () => {
  const store = new IdStore(20 * PAGE);
  const list = (await listUsers(store)).body;
  assert.ok(isPieces(list));
  const pieces = list[Symbol.asyncIterator]();
  await pieces.next();
  for (let i = 0; i < 50; i++) await nextTurn();
  assert.equal(store.pages, 1, 'one page for one piece');
  await pieces.return?.();
});

test('a store that fails half-way breaks the list off: it never looks complete', async () => {
  const store = new IdStore(3 * PAGE);
  store.onPage = () => {
    if (store.pages === 3) throw new Error('gone');
  };
  let text = '';
  const list = (await listUsers(store)).body;
  assert.ok(isPieces(list));
  await assert.rejects(async () => {
    for await (const piece of list) text += String(piece);
  }, /gone/);
  assert.throws(() => JSON.parse(text));
});
