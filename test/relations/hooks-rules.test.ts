import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RelationsData } from '../../src/config/schema/declaration.ts';
import { type BeforeHooks, type CreateEvent, refuse } from '../../src/relations/hooks/hooks.ts';
import { ask } from '../graphql/support/door.ts';
import { relationDoors } from '../support/relations/relation-door.ts';
import { type Caller, declared, ruledDoors } from '../support/relations/ruled-door.ts';

const text = { type: 'text', max: 40 } as const;
const own = { where: { owner: { caller: '/sub' } } };
const open = { where: { owner: { caller: '/sub' }, state: 'open' } };

/** Notes of their owners, which nobody but hooks may close, and a log that only hooks write. */
function relationsWith(before: BeforeHooks) {
  return declared({
    notes: {
      columns: {
        title: { ...text, unique: true },
        owner: text,
        state: { type: 'enum', values: ['open', 'closed'], default: 'open' },
        mark: { ...text, nullable: true, write: { scope: 'marker' } },
      },
      indexes: [['owner']],
      rules: { read: own, create: own, update: open, delete: open },
      before,
    },
    entries: {
      one: 'entry',
      columns: { what: text },
      rules: {
        read: 'anyone',
        create: { scope: 'nobody' },
        update: { scope: 'nobody' },
        delete: { scope: 'nobody' },
      },
    },
  } as RelationsData);
}

/** Writes of a caller, each by REST or by GraphQL, as a status. */
interface Writer {
  create(row: object): Promise<number>;
  update(id: number, changes: object): Promise<number>;
  remove(id: number): Promise<number>;
}

const STATUS: Readonly<Record<string, number>> = {
  NOT_ALLOWED: 403,
  NOT_FOUND: 404,
  HOOK_REFUSED: 409,
  INVALID_ROW: 400,
};

/** The doors by which a caller writes. */
const writers: Readonly<Record<string, (caller: Caller) => Writer>> = {
  REST: (caller) => ({
    create: async (row) => (await caller.send('POST', '/notes', row)).status,
    update: async (id, changes) => (await caller.send('PATCH', `/notes/${id}`, changes)).status,
    remove: async (id) => (await caller.send('DELETE', `/notes/${id}`)).status,
  }),
  GraphQL: (caller) => {
    const send = async (field: string, done: number, variables: Readonly<Record<string, unknown>>) => {
      const types = {
        create: '$data: NoteCreate!',
        update: '$id: ID!, $data: NotePatch!',
        delete: '$id: ID!',
      };
      const given = types[field as 'create'].replaceAll(/\$(\w+): \w+!/g, '$1: $$$1');
      const selected = field === 'delete' ? '' : '{ __typename }';
      const query = `mutation (${types[field as 'create']}) { ${field}Note(${given}) ${selected} }`;
      const { body, text: answer } = await caller.ask(query, variables);
      const [error] = body.errors ?? [];
      if (error === undefined) return done;
      return STATUS[String(error.extensions?.code)] ?? assert.fail(answer);
    };
    return {
      create: (data) => send('create', 201, { data }),
      update: (id, data) => send('update', 200, { id, data }),
      remove: (id) => send('delete', 204, { id }),
    };
  },
};

for (const { engine, open: openDoor } of ruledDoors) {
  for (const [name, writerOf] of Object.entries(writers)) {
    describe(`hooks under rules by ${name} on ${engine}`, () => {
      test('rules judge what a hook has made of a row', async () => {
        let runs = 0;
        const before: BeforeHooks = {
          create({ row, caller, writes }) {
            runs++;
            if (row.title === 'refused') throw refuse('NO', 'not this one', '/title');
            writes.create('entries', { what: `create ${String(row.title)}` });
            if (row.title === 'given') return { owner: 'bob' };
            if (row.title === 'taken') return { owner: caller?.name ?? 'none', mark: 'by the hook' };
            return undefined;
          },
          update({ before: { title }, changes, writes }) {
            runs++;
            writes.create('entries', { what: `update ${String(title)}` });
            if (changes.title === 'close') return { state: 'closed' };
            if (changes.title === 'mark') return { mark: 'by the hook' };
            return undefined;
          },
          delete({ row, writes }) {
            runs++;
            writes.create('entries', { what: `delete ${String(row.title)}` });
          },
        };
        await using door = await openDoor(relationsWith(before));
        const ann = await door.caller('ann', { sub: 'ann', scope: '' });
        const bob = await door.caller('bob', { sub: 'bob', scope: '' });
        const [asAnn, asBob] = [writerOf(ann), writerOf(bob)];
        const rows = async (caller: Caller) => (await caller.get('/notes?sort=id')).body as object[];
        const log = async () =>
          ((await ann.get('/entries?sort=id')).body as { what: string }[]).map(({ what }) => what);

        // The hook completes a row that the rule would refuse, and spoils one that it would not.
        assert.equal(await asAnn.create({ title: 'taken', owner: 'bob' }), 201);
        assert.equal(await asAnn.create({ title: 'given', owner: 'ann' }), 403);
        assert.equal(await asAnn.create({ title: 'refused', owner: 'ann' }), 409);
        assert.deepEqual(
          (await rows(ann)).map((row) => ({ ...row, id: 0 })),
          [{ id: 0, title: 'taken', owner: 'ann', state: 'open', mark: 'by the hook' }],
        );
        // What it adds is stored with the row, whoever may not write it, and only then.
        assert.deepEqual(await log(), ['create taken']);
        assert.equal((await ann.send('POST', '/entries', { what: 'mine' })).status, 403);

        const [{ id } = { id: 0 }] = (await rows(ann)) as { id: number }[];
        // A row that the caller may not see is missing before a hook sees it.
        const ran = runs;
        assert.equal(await asBob.update(id, { title: 'mark' }), 404);
        assert.equal(await asBob.remove(id), 404);
        assert.equal(runs, ran);
        // A column that the hook may write, and the client not.
        assert.equal(await asAnn.update(id, { title: 'mark' }), 200);
        assert.notEqual(await asAnn.update(id, { mark: 'by ann' }), 200);
        // A change that the hook makes into one that the rule refuses.
        assert.equal(await asAnn.update(id, { title: 'close' }), 403);
        assert.deepEqual(await rows(ann), [
          { id, title: 'mark', owner: 'ann', state: 'open', mark: 'by the hook' },
        ]);
        assert.equal(await asAnn.remove(id), 204);
        assert.deepEqual(await log(), ['create taken', 'update taken', 'delete mark']);
        assert.deepEqual(await rows(ann), []);
      });
    });
  }

  test(`hooks on ${engine} are told who writes, by every way to write`, async () => {
    const seen: CreateEvent['caller'][] = [];
    const see = ({ caller }: Pick<CreateEvent, 'caller'>) => {
      seen.push(caller);
    };
    await using door = await openDoor(relationsWith({ create: see, update: see, delete: see }));
    const ndjson = { 'content-type': 'application/x-ndjson' };
    const row = (title: string, owner: string) => ({ title, owner });
    for (const name of ['ann', 'bob', 'ann']) {
      const caller = await door.caller(name, { sub: name, scope: 'a b', team: { at: [1] } });
      const at = seen.length;
      const first = `${name}${at}`;
      await caller.send('POST', '/notes', row(first, name));
      const [{ id }] = (await caller.get('/notes?sort=-id&limit=1')).body as [{ id: number }];
      await caller.send('PATCH', `/notes/${id}`, { title: `${first}x` });
      await caller.send('POST', '/notes', [row(`${first}a`, name), row(`${first}b`, name)]);
      await caller.send('POST', '/notes', JSON.stringify(row(`${first}c`, name)), ndjson);
      await caller.send('POST', '/_batch', {
        writes: [{ method: 'POST', path: '/notes', body: row(`${first}d`, name) }],
      });
      await caller.data('mutation ($data: NoteCreate!) { createNote(data: $data) { id } }', {
        data: row(`${first}e`, name),
      });
      await caller.send('DELETE', `/notes/${id}`);
      const callers = seen.slice(at);
      assert.equal(callers.length, 8);
      for (const known of callers) {
        assert.deepEqual([known?.kind, known?.name], ['jwt', name]);
        assert.deepEqual([...(known?.scopes ?? [])].toSorted(), ['a', 'b']);
        assert.deepEqual(known?.claims?.team, { at: [1] });
      }
    }
  });
}

for (const [engine, openDoor] of Object.entries(relationDoors)) {
  test(`hooks on ${engine} have no caller without access control`, async () => {
    const seen: CreateEvent['caller'][] = [];
    const create = ({ caller }: Pick<CreateEvent, 'caller'>) => {
      seen.push(caller);
    };
    const tags = declared({ tags: { columns: { tag: text }, before: { create } } } as RelationsData);
    await using door = await openDoor(tags, { graphql: true });
    assert.equal((await door.send('POST', '/tags', { tag: 'a' })).status, 201);
    const { body } = await ask(door.graphql, 'mutation { createTag(data: { tag: "b" }) { tag } }');
    assert.deepEqual(body, { data: { createTag: { tag: 'b' } } });
    assert.deepEqual(seen, [undefined, undefined]);
  });
}
