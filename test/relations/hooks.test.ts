import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import type { RelationsData } from '../../src/config/schema/declaration.ts';
import { readRelations } from '../../src/config/schema/relations.ts';
import { type BeforeHooks, refuse } from '../../src/relations/hooks/hooks.ts';
import type { Relation } from '../../src/relations/relation.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { fingerprintOf } from '../../src/sql/schema/tables.ts';
import { graphqlRelationDoors } from '../graphql/support/relations-door.ts';
import { relationDoors } from '../support/relations/relation-door.ts';

const text = { type: 'text', max: 40 } as const;
const whole = { type: 'integer', min: 0, max: 1_000 } as const;

/** Items with a ledger, in which hooks write. Tags have no hooks. */
function data(before?: BeforeHooks): RelationsData {
  return {
    items: {
      columns: {
        name: { ...text, unique: true },
        left: { ...whole, default: 10 },
        note: { ...text, nullable: true },
      },
      computed: { label: { concat: ['name', ' x', 'left'] } },
      ...(before !== undefined && { before }),
    },
    ledger: {
      one: 'entry',
      columns: {
        entry: { ...text, unique: true },
        item: { type: 'reference', to: 'items', inverse: 'entries', nullable: true },
      },
    },
    tags: {
      columns: { tag: text, item: { type: 'reference', to: 'items', onDelete: 'null', nullable: true } },
    },
    places: {
      key: ['code'],
      columns: { code: text, title: text },
      ...(before !== undefined && { before }),
    },
  };
}

function problemsOf(given: unknown): readonly string[] {
  const problems: string[] = [];
  readRelations({ value: given, path: 'c' }, problems);
  return problems;
}

function read(before?: BeforeHooks): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data(before), path: 'c' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

test('hooks are functions of known moments, with a time', () => {
  const create = () => undefined;
  assert.deepEqual(problemsOf({ items: { columns: { a: text }, before: { create: 'x' } } }), [
    'c.items.before.create must be a function',
  ]);
  assert.match(
    problemsOf({ items: { columns: { a: text }, before: { craete: create } } })[0] ?? '',
    /did you mean create\?/,
  );
  assert.match(
    problemsOf({ items: { columns: { a: text }, before: { create, timeout: 0 } } })[0] ?? '',
    /from 1 to 60000/,
  );
  assert.equal(fingerprintOf(read({ create })), fingerprintOf(read()), 'they do not concern the tables');
});

test('a reference by which the engine would go past a hook is refused', () => {
  for (const [onDelete, hook] of [
    ['cascade', 'delete'],
    ['null', 'update'],
  ] as const) {
    const item = { type: 'reference', to: 'items', onDelete, nullable: true };
    const [problem, ...others] = problemsOf({
      items: { columns: { a: text } },
      lines: { columns: { item }, before: { [hook]: () => undefined } },
    });
    assert.deepEqual(others, []);
    assert.match(
      problem ?? '',
      new RegExp(`lines\\.columns\\.item\\.onDelete "${onDelete}" does not go with before\\.${hook}`),
    );
  }
});

/** Hooks that count what they see. */
function watched(hooks: BeforeHooks) {
  const seen: unknown[] = [];
  const noting = <E extends { readonly relation: string }>(
    is: string,
    run: ((event: E) => unknown) | undefined,
  ) =>
    run === undefined
      ? undefined
      : (event: E) => {
          const {
            writes: _writes,
            signal: _signal,
            caller: _caller,
            ...rest
          } = event as E & { writes: unknown; signal: unknown; caller: unknown };
          seen.push([is, rest]);
          return run(event) as never;
        };
  const before = {
    ...hooks,
    create: noting('create', hooks.create),
    update: noting('update', hooks.update),
    delete: noting('delete', hooks.delete),
  };
  const given = Object.fromEntries(Object.entries(before).filter(([, value]) => value !== undefined));
  return { seen, relations: read(given as BeforeHooks) };
}

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`hooks of relations on ${engine}`, () => {
    test('a hook before a create sees the row, changes it, refuses it and adds writes to its commit', async () => {
      const { seen, relations } = watched({
        async create({ relation, row, writes }) {
          await new Promise(setImmediate);
          if (relation !== 'items') return undefined;
          if (row.left === 0) throw refuse('SOLD_OUT', 'there are none left', '/left');
          writes.create('ledger', { entry: `new ${String(row.name)}`, item_id: writes.stored('id') });
          return { note: `was ${String(row.left)}`, left: 5 };
        },
      });
      await using door = await open(relations);
      const created = await door.send('POST', '/items', { name: 'pen' });
      assert.deepEqual(created.body, { id: 1, name: 'pen', left: 5, note: 'was 10', label: 'pen x5' });
      assert.deepEqual(seen, [['create', { relation: 'items', row: { name: 'pen', left: 10, note: null } }]]);
      assert.deepEqual((await door.get('/ledger')).body, [{ id: 1, entry: 'new pen', item_id: 1 }]);

      const refused = await door.send('POST', '/items', { name: 'cup', left: 0 });
      assert.deepEqual([refused.status, refused.body.code], [409, 'HOOK_REFUSED']);
      assert.deepEqual(refused.body.errors, [
        { detail: 'there are none left', pointer: '#/left', reason: 'SOLD_OUT' },
      ]);
      // Of an array all or none.
      const array = await door.send('POST', '/items', [{ name: 'a' }, { name: 'b', left: 0 }]);
      assert.deepEqual([array.status, array.body.errors[0].pointer], [409, '#/1/left']);
      // A constraint on what is added refuses the row too.
      await door.send('POST', '/ledger', { entry: 'new ink' });
      const taken = await door.send('POST', '/items', { name: 'ink' });
      assert.deepEqual([taken.status, taken.body.code], [409, 'HOOK_REFUSED'], taken.text);
      assert.match(
        taken.body.errors[0].detail,
        /a write to ledger that a hook adds is refused: another row has the same entry/,
      );
      assert.equal((await door.get('/items')).body.length, 1);
      assert.equal((await door.get('/ledger')).body.length, 2);
      const two = await door.send('POST', '/items', [{ name: 'a' }, { name: 'b' }]);
      assert.deepEqual(
        two.body.map(({ label }: { label: string }) => label),
        ['a x5', 'b x5'],
      );
      const entries = (await door.get('/ledger?fields=entry,item_id&sort=-id&limit=2')).body;
      assert.deepEqual(entries, [
        { entry: 'new b', item_id: two.body[1].id },
        { entry: 'new a', item_id: two.body[0].id },
      ]);
    });

    test('hooks before changes and deletions see the row as it is, in every kind of write', async () => {
      const { seen, relations } = watched({
        create: () => undefined,
        update: ({ relation, changes, before, writes }) => {
          if (changes.name === 'no') throw refuse('NO', 'not so', '/name');
          if (relation === 'items')
            writes.create('tags', { tag: `${String(before.name)} changed`, item_id: Number(before.id) });
          return relation === 'items' ? { note: 'seen' } : undefined;
        },
        delete: ({ relation, row, writes }) => {
          if (row.name === 'keep') throw refuse('KEEP', 'it stays');
          if (relation === 'items') writes.create('ledger', { entry: `gone ${String(row.name)}` });
        },
      });
      const kinds = () => seen.splice(0).map((each) => (each as readonly [string])[0]);
      await using door = await open(relations);
      await door.send('POST', '/items', [{ name: 'a' }, { name: 'keep' }, { name: 'c' }, { name: 'd' }]);
      kinds();
      const changed = await door.send('PATCH', '/items/1', { left: 3 });
      assert.deepEqual([changed.body.note, changed.body.label], ['seen', 'a x3'], changed.text);
      const [[is, event]] = seen.splice(0) as [[string, Record<string, unknown>]];
      assert.equal(is, 'update');
      assert.deepEqual(event.changes, { left: 3 });
      assert.deepEqual(event.before, { id: 1, name: 'a', left: 10, note: null, label: 'a x10' });
      const refused = await door.send('PATCH', '/items/1', { name: 'no' });
      assert.deepEqual(refused.body.errors, [{ detail: 'not so', pointer: '#/name', reason: 'NO' }]);
      assert.equal((await door.send('PATCH', '/items/99', { left: 1 })).status, 404);
      const stale = await door.send('PATCH', '/items/1', { left: 1 }, { 'if-match': '"1"' });
      assert.equal(stale.status, 412);
      kinds();

      const put = await door.send('PUT', '/items/1', { name: 'a2', left: 1 });
      assert.deepEqual([put.status, put.body.note], [200, 'seen'], put.text);
      assert.equal((await door.send('PUT', '/places/x', { title: 't' })).status, 201);
      assert.equal((await door.send('PUT', '/places/x', { title: 'u' })).status, 200);
      assert.deepEqual(kinds(), ['update', 'create', 'update']);

      const upserted = await door.send('POST', '/items?on=name', [{ name: 'a2', left: 7 }, { name: 'new' }]);
      assert.deepEqual(
        upserted.body.map((row: { left: number }) => row.left),
        [7, 10],
        upserted.text,
      );
      assert.deepEqual(kinds(), ['update', 'create']);
      const ignored = await door.send(
        'POST',
        '/items?on=name',
        { name: 'a2' },
        { prefer: 'resolution=ignore' },
      );
      assert.match(ignored.text, /resolution=ignore is not possible for items, which has hooks/);

      const nested = await door.send('POST', '/tags', { tag: 'x', item: { name: 'inner' } });
      assert.equal(nested.status, 201, nested.text);
      const inner = await door.send('POST', '/items', { name: 'outer', tags: [{ tag: 'y' }] });
      assert.equal(inner.status, 201, inner.text);
      assert.deepEqual(kinds(), ['create', 'create']);

      const batch = await door.send('POST', '/_batch', {
        writes: [
          { method: 'POST', path: '/items', body: { name: 'batched' } },
          { method: 'PATCH', path: '/items/3', body: { left: 2 } },
          { method: 'POST', path: '/tags', body: { tag: 'z', item_id: { $result: 0, pointer: '/id' } } },
          { method: 'DELETE', path: '/items/4' },
        ],
      });
      assert.equal(batch.status, 200, batch.text);
      assert.deepEqual(kinds().toSorted(), ['create', 'delete', 'update']);
      const { results } = batch.body;
      assert.deepEqual([results[1].body.note, results[2].body.item_id], ['seen', results[0].body.id]);
      const blind = await door.send('POST', '/_batch', {
        writes: [
          { method: 'POST', path: '/items', body: { name: 'later' } },
          { method: 'PATCH', path: '/items/{$0/id}', body: { left: 2 } },
        ],
      });
      assert.match(blind.text, /hooks of items need the row before the transaction begins/);
      const twice = await door.send('POST', '/_batch', {
        writes: [
          { method: 'PATCH', path: '/items/3', body: { left: 2 } },
          { method: 'DELETE', path: '/items/3' },
        ],
      });
      assert.match(twice.text, /a transaction writes to a row of items once/);
      kinds();

      const kept = await door.send('DELETE', '/items?left:gte=1', undefined, { prefer: 'max-affected=100' });
      assert.deepEqual([kept.status, kept.body.code], [409, 'HOOK_REFUSED'], kept.text);
      assert.equal((await door.send('DELETE', '/items/3')).status, 204);
      const some = await door.send('DELETE', '/items?name=new', undefined, { prefer: 'max-affected=10' });
      assert.deepEqual([some.status, some.headers.get('x-total-count')], [204, '1'], some.text);
      const many = await door.send('DELETE', '/items?left:gte=1', undefined, { prefer: 'max-affected=2' });
      assert.equal(many.body.code, 'LIMIT_EXCEEDED');
      assert.deepEqual(
        (await door.get('/ledger?entry:prefix=gone&fields=entry&sort=entry')).body.map(
          ({ entry }: { entry: string }) => entry,
        ),
        ['gone c', 'gone d', 'gone new'],
      );
    });

    test('an import calls the hook for each row, and refuses rows one by one', async () => {
      const { relations } = watched({
        create: ({ relation, row, writes }) => {
          if (row.left === 0) throw refuse('SOLD_OUT', 'there are none left', '/left');
          if (row.left === 1) writes.create('ledger', { entry: 'x' });
          return relation === 'items' ? { note: 'imported' } : undefined;
        },
      });
      await using door = await open(relations);
      const lines = [{ name: 'a' }, { name: 'b', left: 0 }, { name: 'c', left: 1 }, { name: 'd' }];
      const type = { 'content-type': 'application/x-ndjson' };
      const body = lines.map((line) => JSON.stringify(line)).join('\n');
      const reply = await door.send('POST', '/items', body, type);
      assert.match(reply.text, /"created":2,"refused":2/);
      assert.match(reply.text, /there are none left/);
      assert.match(reply.text, /an import cannot store the writes that the hook of items adds/);
      const rows = (await door.get('/items?fields=name,note')).body;
      assert.deepEqual(rows, [
        { name: 'a', note: 'imported' },
        { name: 'd', note: 'imported' },
      ]);
      const all = await door.send('POST', '/items', body.replaceAll('"a"', '"e"'), {
        ...type,
        prefer: 'transaction=all',
      });
      assert.match(all.text, /there are none left/);
      assert.equal((await door.get('/items')).body.length, 2);
    });

    test('a row that is changed while its hook runs is seen again; a change that never ends is a 412', async () => {
      let interferes = 1;
      const urls: string[] = [];
      const { seen, relations } = watched({
        update: async ({ relation, changes, before }) => {
          if (relation !== 'items' || changes.note === 'other' || interferes-- <= 0) return undefined;
          await fetch(`${urls[0]}/items/1`, { method: 'PATCH', body: '{"note":"other"}' });
          return { left: Number(before.left) + 1 };
        },
      });
      await using door = await open(relations);
      urls.push(door.url);
      await door.send('POST', '/items', { name: 'pen' });
      const once = await door.send('PATCH', '/items/1', { left: 2 });
      assert.deepEqual([once.status, once.body.left, once.body.note], [200, 2, 'other'], once.text);
      assert.equal(seen.length, 3, 'the hook ran again, with the row as it was then');
      assert.equal((seen[2] as [string, { before: { note: string } }])[1].before.note, 'other');
      interferes = 100;
      assert.equal((await door.send('PATCH', '/items/1', { left: 9 })).status, 412);
      assert.equal((await door.get('/items/1')).body.left, 2);
    });

    test('a hook has a time, and one that fails is a 500; neither stores anything', async () => {
      const aborted: unknown[] = [];
      const { relations } = watched({
        timeout: 50,
        create: async ({ row, signal }) => {
          if (row.name === 'slow') {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            aborted.push(row.name);
          }
          if (row.name === 'broken') throw new Error('no such thing');
          if (row.name === 'odd') return { left: -1 };
          return undefined;
        },
      });
      await using door = await open(relations);
      const slow = await door.send('POST', '/items', { name: 'slow' });
      assert.deepEqual([slow.status, slow.body.code], [503, 'HOOK_TIMEOUT'], slow.text);
      assert.match(
        slow.body.errors[0].detail,
        /the hook before create of items took longer than 50 ms \(before\.timeout\)/,
      );
      assert.deepEqual(aborted, ['slow']);
      const broken = await door.send('POST', '/items', [{ name: 'fine' }, { name: 'broken' }]);
      assert.deepEqual([broken.status, broken.body.code], [500, 'INTERNAL'], broken.text);
      assert.doesNotMatch(broken.text, /no such thing/);
      const odd = await door.send('POST', '/items', { name: 'odd' });
      assert.deepEqual(
        [odd.status, odd.body.code, odd.body.errors[0].pointer],
        [400, 'INVALID_ROW', '#/left'],
        odd.text,
      );
      assert.deepEqual((await door.get('/items')).body, []);
    });

    test('a repeated Idempotency-Key gets the first reply, and stores what hooks add once', async () => {
      let runs = 0;
      const { relations } = watched({
        create: ({ relation, row, writes }) => {
          if (relation !== 'items') return undefined;
          if (runs++ > 1) throw refuse('LATE', 'too late');
          writes.create('ledger', { entry: `new ${String(row.name)}`, item_id: writes.stored('id') });
          return { note: `run ${runs}` };
        },
        update: () => undefined,
      });
      await using door = await open(relations);
      const key = (name: string) => ({ 'idempotency-key': name });
      const first = await door.send('POST', '/items', { name: 'pen' }, key('k1'));
      const again = await door.send('POST', '/items', { name: 'pen' }, key('k1'));
      assert.deepEqual([again.status, again.body], [201, first.body], again.text);
      const array = [{ name: 'a' }];
      const one = await door.send('POST', '/items', array, key('k2'));
      const two = await door.send('POST', '/items', array, key('k2'));
      assert.deepEqual([two.status, two.body], [201, one.body], two.text);
      assert.equal((await door.send('POST', '/items', [{ name: 'b' }], key('k2'))).status, 422);
      assert.equal(runs, 2);
      assert.equal((await door.get('/ledger')).body.length, 2);
    });

    test('what hooks add is bounded, and a hook that adds to its own relation ends', async () => {
      const { relations } = watched({
        create: ({ row, writes }) => {
          writes.create('items', { name: `${String(row.name)}.` });
        },
      });
      await using door = await open(relations);
      const reply = await door.send('POST', '/items', { name: '' });
      assert.ok([400, 500].includes(reply.status), reply.text);
      assert.deepEqual((await door.get('/items')).body, []);
    });
  });
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  test(`mutations run hooks too, on ${engine}`, async () => {
    const { relations } = watched({
      create: ({ relation, row, writes }) => {
        if (row.left === 0) throw refuse('SOLD_OUT', 'there are none left', '/left');
        if (relation === 'items') writes.create('ledger', { entry: String(row.name) });
        return { note: 'seen' };
      },
      delete: () => {
        throw refuse('KEEP', 'it stays');
      },
    });
    await using door = await open(relations);
    const created = await door.data('mutation { createItem(data: { name: "pen" }) { id note label } }');
    assert.deepEqual(created.createItem, { id: '1', note: 'seen', label: 'pen x10' });
    const many = await door.error(
      'mutation { createItems(data: [{ name: "a" }, { name: "b", left: 0 }]) { id } }',
    );
    assert.equal(many.extensions?.code, 'HOOK_REFUSED');
    assert.deepEqual(many.extensions?.errors, [
      { detail: 'there are none left', pointer: '#/1/left', reason: 'SOLD_OUT' },
    ]);
    const kept = await door.error('mutation { deleteItem(id: "1") }');
    assert.equal(kept.message, 'it stays');
    const { items, ledger } = await door.data('{ items { name } ledger { entry } }');
    assert.deepEqual([items.length, ledger.length], [1, 1]);
  });
}

test('a relation without hooks has the same statements beside one that has some', async () => {
  const run = async (relations: readonly Relation[]) => {
    const texts = new Set<string>();
    const { prepare } = DatabaseSync.prototype;
    DatabaseSync.prototype.prepare = function (this: DatabaseSync, text, ...rest) {
      texts.add(text);
      return prepare.call(this, text, ...rest);
    };
    try {
      await using database = await openDatabase('sqlite::memory:');
      const { stores } = await database.openRelations(relations);
      const tags = stores.get('tags');
      assert.ok(tags !== undefined);
      texts.clear();
      await tags.create([[null, 'a', null]]);
      await tags.createOnce([null, 'b', null], { key: 'k', fingerprint: 'f', keptFor: 9 });
      await tags.change([1], new Map([[1, 'c']]), undefined);
      await tags.transactions.write([{ is: 'create', relation: 'tags', row: [null, 'd', null] }]);
      await tags.importRows([[null, 'e', null]], { isWhole: true, checkpoint: undefined });
      await tags.remove([1], undefined);
      await tags.removeAll({ is: 'and', all: [] }, 10);
    } finally {
      DatabaseSync.prototype.prepare = prepare;
    }
    return [...texts];
  };
  const alone = await run(read());
  assert.ok(alone.length > 3);
  assert.deepEqual(
    await run(read({ create: () => undefined, update: () => undefined, delete: () => undefined })),
    alone,
  );
});
