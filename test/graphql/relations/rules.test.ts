import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Caller, declared, ruledDoors } from '../../support/relations/ruled-door.ts';
import { NOTES, openNotes, openProjects } from '../../support/relations/ruled-worlds.ts';

const titles = (rows: readonly { readonly title: string }[]) => rows.map(({ title }) => title).toSorted();

/** What a caller finds of an operation that is refused as a whole, or at a field. */
async function refused(caller: Caller, query: string): Promise<unknown> {
  const { body, text } = await caller.ask(query);
  const [error] = body.errors ?? [];
  assert.ok(error !== undefined, `${caller.name} ${query} ${text}`);
  return [error.extensions?.code, error.message, error.extensions?.errors, body.data ?? null];
}

for (const { engine, open } of ruledDoors) {
  describe(`rules in GraphQL on ${engine}`, () => {
    test('each caller sees its rows in lists, counts, connections and rows, after any other', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous, nameless, ids } = world;
      const all = ['a-private', 'a-public', 'b-private', 'b-public'];
      const seen: readonly (readonly [Caller, readonly string[]])[] = [
        [anonymous, ['a-public', 'b-public']],
        [nameless, ['a-public', 'b-public']],
        [ann, ['a-private', 'a-public', 'b-public']],
        [bob, ['a-public', 'b-private', 'b-public']],
        [staff, all],
      ];
      const document = `query ($order: [NoteOrder!], $where: NoteWhere, $id: ID!) {
        notes(orderBy: $order, where: $where) { title }
        notesConnection(orderBy: $order, where: $where, first: 2) {
          totalCount pageInfo { hasNextPage endCursor } edges { cursor node { title } }
        }
        note(id: $id) { title }
      }`;
      // Plans and selections of one document are kept; each caller asks first once.
      for (const order of [seen, seen.toReversed()]) {
        for (const orderBy of [[], [{ title: 'DESC' }], [{ team: { name: 'ASC' } }]]) {
          for (const where of [undefined, { title: { prefix: '' } }]) {
            for (const [caller, expected] of order) {
              for (const [name, id] of Object.entries(ids)) {
                const data = await caller.data(document, { order: orderBy, where, id: String(id) });
                assert.deepEqual(titles(data.notes), expected, caller.name);
                const page = data.notesConnection;
                assert.equal(page.totalCount, expected.length);
                assert.equal(page.pageInfo.hasNextPage, expected.length > 2);
                assert.deepEqual(
                  page.edges.map(({ node }: { node: unknown }) => node),
                  data.notes.slice(0, 2),
                );
                const title = name
                  .replace(/^(.).*?([A-Z])/, '$1-$2')
                  .replace(/-(.)/, (found) => found.toLowerCase());
                assert.deepEqual(
                  data.note,
                  expected.includes(title) ? { title } : null,
                  `${caller.name} ${name}`,
                );
              }
            }
          }
        }
      }
      // What a caller may not read is refused before and after one who may has asked for it.
      for (const [caller] of [...seen, ...seen]) {
        for (const query of ['{ notes { title rank } }', '{ notes(where: { rank: { gt: 5 } }) { title } }']) {
          const { body, text } = await caller.ask(query);
          const code = body.errors?.[0]?.extensions?.code;
          assert.equal(code, caller === staff ? undefined : 'NOT_ALLOWED', text);
        }
      }
    });

    test('pages go on for each caller among its own rows', async () => {
      await using world = await openNotes(open);
      const { ann, staff, anonymous } = world;
      const page = (after: string | null) =>
        `{ notesConnection(first: 1, orderBy: [{ team: { name: ASC } }, { title: ASC }]${after === null ? '' : `, after: "${after}"`}) { edges { cursor node { title } } pageInfo { endCursor hasNextPage } } }`;
      const walk = async (caller: Caller) => {
        const found: string[] = [];
        for (let after: string | null = null; ; ) {
          const { notesConnection } = await caller.data(page(after));
          for (const { cursor, node } of notesConnection.edges) {
            found.push(node.title);
            if (caller !== staff)
              assert.doesNotMatch(Buffer.from(cursor.slice(22), 'base64url').toString(), /hidden/);
          }
          after = notesConnection.pageInfo.endCursor;
          if (!notesConnection.pageInfo.hasNextPage) return found;
        }
      };
      // A hidden team sorts as none.
      assert.deepEqual(await walk(staff), ['b-public', 'a-public', 'a-private', 'b-private']);
      assert.deepEqual(await walk(ann), ['a-public', 'a-private', 'b-public']);
      assert.deepEqual(await walk(anonymous), ['a-public', 'b-public']);
      // A cursor of somebody else leads to rows of the caller.
      const first = await staff.data(
        '{ notesConnection(first: 1, orderBy: { title: ASC }) { pageInfo { endCursor } } }',
      );
      const { endCursor } = first.notesConnection.pageInfo;
      const next = await anonymous.data(
        `{ notesConnection(first: 9, orderBy: { title: ASC }, after: "${endCursor}") { edges { node { title } } } }`,
      );
      assert.deepEqual(
        next.notesConnection.edges.map(({ node }: { node: { title: string } }) => node.title),
        ['a-public', 'b-public'],
      );
    });

    test('a column that a caller may not read cannot be named, before a statement runs', async () => {
      await using world = await openNotes(open);
      const { ann, staff, anonymous, nameless } = world;
      const queries = [
        '{ notes { rank } }',
        '{ notes { r: rank title } }',
        '{ note(id: 999) { rank } }',
        '{ notesConnection { edges { node { rank } } } }',
        '{ notes(where: { rank: { eq: 5 } }) { title } }',
        '{ notes(where: { not: { rank: { isNull: true } } }) { title } }',
        '{ notes(where: { or: [{ title: { eq: "x" } }, { rank: { gt: 1 } }] }) { title } }',
        '{ notes(orderBy: { rank: DESC }) { title } }',
        '{ notesConnection(where: { rank: { gt: 1 } }) { totalCount } }',
        '{ notesConnection(orderBy: { rank: ASC }) { pageInfo { endCursor } } }',
        '{ teams { notes { rank } } }',
        '{ teams { notes(where: { rank: { gt: 1 } }) { title } } }',
        '{ teams { notes(orderBy: { rank: ASC }) { title } } }',
        '{ teams(where: { notes: { some: { rank: { eq: 5 } } } }) { name } }',
        'mutation { updateNote(id: 1, data: { title: "t" }) { rank } }',
        'mutation { createNote(data: { title: "t" }) { team { notes { rank } } } }',
        'subscription { noteCreated { rank } }',
        'subscription { noteCreated(where: { rank: { gt: 1 } }) { title } }',
      ];
      for (const caller of [anonymous, ann, nameless]) {
        for (const query of queries) {
          if (query.startsWith('subscription') || (query.startsWith('mutation') && caller !== ann)) continue;
          const { body, text } = await caller.ask(query);
          const [error, ...others] = body.errors ?? [];
          assert.equal(error?.extensions?.code, 'NOT_ALLOWED', `${caller.name} ${query} ${text}`);
          assert.match(error?.message ?? '', /"rank", which the caller may not read in rows of notes/);
          assert.equal(others.length, 0);
        }
      }
      const [{ title } = { title: '' }] = (
        await staff.data('{ notes(where: { rank: { gte: 7 } }) { title rank } }')
      ).notes;
      assert.equal(title, 'b-private');
      // A refused mutation has written nothing.
      assert.deepEqual((await staff.data('{ notes { title } }')).notes.length, 4);
      assert.deepEqual((await staff.data('{ notes(where: { title: { eq: "t" } }) { title } }')).notes, []);
    });

    test('a path over references and inverses sees only rows that the caller may read', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous, ids } = world;
      const notes = async (caller: Caller, where: string) =>
        titles((await caller.data(`{ notes(where: ${where}) { title } }`)).notes);
      assert.deepEqual(await notes(ann, '{ team: { name: { eq: "hidden" } } }'), []);
      assert.deepEqual(await notes(ann, '{ team: {} }'), ['a-public']);
      assert.deepEqual(await notes(ann, '{ not: { team: {} } }'), ['a-private', 'b-public']);
      assert.deepEqual(await notes(staff, '{ team: { name: { eq: "hidden" } } }'), ['b-public']);
      const names = async (caller: Caller, where: string) =>
        (await caller.data(`{ teams(where: ${where}) { name } }`)).teams.map(
          ({ name }: { name: string }) => name,
        );
      await staff.data(`mutation { updateNote(id: ${ids.bobPrivate}, data: { team_id: 1 }) { id } }`);
      assert.deepEqual(await names(ann, '{ notes: { some: { title: { eq: "b-private" } } } }'), []);
      assert.deepEqual(await names(bob, '{ notes: { some: { title: { eq: "b-private" } } } }'), ['open']);
      assert.deepEqual(await names(ann, '{ notes: { every: { title: { eq: "a-public" } } } }'), ['open']);
      assert.deepEqual(await names(bob, '{ notes: { every: { title: { eq: "a-public" } } } }'), []);
      assert.deepEqual(await names(anonymous, '{ notes: { some: { comments: { some: {} } } } }'), []);
      const count = await ann.data(
        '{ notesConnection(where: { comments: { some: { text: { eq: "on bob" } } } }) { totalCount } }',
      );
      assert.equal(count.notesConnection.totalCount, 0);
      assert.deepEqual(
        (await ann.data('{ notes(orderBy: { title: ASC }) { title team { name } comments { text } } }'))
          .notes,
        [
          { title: 'a-private', team: null, comments: [] },
          { title: 'a-public', team: { name: 'open' }, comments: [{ text: 'on ann' }] },
          { title: 'b-public', team: null, comments: [] },
        ],
      );
    });

    test('nested rows and columns are those that the caller may read', async () => {
      await using world = await openProjects(open);
      const { staff, ann, bob, anonymous } = world;
      const document =
        '{ projects(orderBy: { name: ASC }) { name lead { name } tasks { title project { name } } } }';
      const ofAnn = [
        { name: 'a1', lead: { name: 'open' }, tasks: [{ title: 'ta', project: { name: 'a1' } }] },
        { name: 'a2', lead: null, tasks: [{ title: 'td', project: { name: 'a2' } }] },
      ];
      for (const callers of [
        [ann, staff],
        [staff, ann],
      ]) {
        for (const caller of callers) {
          const { projects } = await caller.data(document);
          if (caller === ann) assert.deepEqual(projects, ofAnn);
          else assert.deepEqual(projects[1].lead, { name: 'hidden' });
        }
      }
      assert.deepEqual(
        (await ann.data('{ tasks(orderBy: { title: ASC }) { title project { name } } }')).tasks,
        [
          { title: 'ta', project: { name: 'a1' } },
          { title: 'tc', project: null },
          { title: 'td', project: { name: 'a2' } },
        ],
      );
      assert.deepEqual((await bob.data('{ project(id: 3) { name tasks { title } } }')).project, {
        name: 'b1',
        tasks: [],
      });
      assert.equal((await ann.data('{ project(id: 3) { name tasks { title } } }')).project, null);
      const sorted = `{ people { projects(orderBy: [{ lead: { name: DESC } }, { name: ASC }], limit: 1) { name } } }`;
      assert.deepEqual((await ann.data(sorted)).people, [{ projects: [{ name: 'a1' }] }]);
      const filtered =
        '{ people { projects(where: { tasks: { some: { title: { eq: "tb" } } } }) { name } } }';
      assert.deepEqual((await ann.data(filtered)).people, [{ projects: [] }]);
      for (const query of [
        '{ tasks { project { budget } } }',
        '{ people { projects(where: { budget: { eq: 1 } }) { name } } }',
        '{ people { projects(orderBy: { budget: ASC }) { name } } }',
      ])
        assert.equal(await ann.code(query), 'NOT_ALLOWED', query);
      assert.deepEqual((await staff.data('{ project(id: 1) { tags { word } budget } }')).project, {
        tags: [{ word: 'x' }],
        budget: 10,
      });
      assert.equal(await ann.code('{ project(id: 1) { tags { word } } }'), 'NOT_ALLOWED');
      const stranger = await anonymous.ask('{ people { projects { name } } }');
      assert.deepEqual([stranger.status, stranger.headers.get('x-error-code')], [401, 'UNAUTHORIZED']);
    });

    test('a hidden row is missing for every write, and one that may not be written is refused', async () => {
      await using world = await openNotes(open);
      const { ann, bob, nameless, anonymous, staff, ids } = world;
      const { _version: version } = (await staff.data(`{ note(id: ${ids.bobPrivate}) { _version } }`)).note;
      for (const condition of ['', `, ifVersion: ${version}`, ', ifVersion: 1']) {
        const writes = (id: number) => [
          `mutation { updateNote(id: ${id}, data: { title: "stolen" }${condition}) { title } }`,
          `mutation { deleteNote(id: ${id}${condition}) }`,
        ];
        const absent = writes(999);
        const readable = writes(ids.bobPublic);
        for (const [i, hidden] of writes(ids.bobPrivate).entries()) {
          assert.deepEqual(await refused(ann, hidden), await refused(ann, absent[i] ?? ''));
          assert.equal(await ann.code(hidden), 'NOT_FOUND');
          assert.equal(await ann.code(readable[i] ?? ''), 'NOT_ALLOWED');
          const [strangers, named] = [await anonymous.ask(hidden), await nameless.ask(hidden)];
          assert.deepEqual([strangers.status, named.status], [401, 403]);
          assert.match(strangers.headers.get('www-authenticate') ?? '', /^Bearer/);
        }
      }
      const refusal = await ann.ask(
        `mutation { a: createNote(data: { title: "first" }) { id } b: updateNote(id: ${ids.bobPublic}, data: { title: "x" }) { id } }`,
      );
      assert.deepEqual(refusal.body.errors?.[0]?.path, ['b']);
      assert.deepEqual(refusal.body.errors?.[0]?.extensions, {
        code: 'NOT_ALLOWED',
        errors: [{ detail: 'a rule does not let the caller write this row', pointer: '#' }],
      });
      // One transaction: nothing of the operation is stored.
      assert.deepEqual((await staff.data('{ notes(where: { title: { eq: "first" } }) { id } }')).notes, []);
      assert.equal(
        await bob.code(
          `mutation { updateNote(id: ${ids.bobPrivate}, data: { title: "m" }, ifVersion: 1) { id } }`,
        ),
        'PRECONDITION_FAILED',
      );
      const mine = await bob.data(
        `mutation { updateNote(id: ${ids.bobPrivate}, data: { title: "mine" }, ifVersion: ${version}) { title owner } }`,
      );
      assert.deepEqual(mine.updateNote, { title: 'mine', owner: 'bob' });
      assert.equal(await bob.code(`mutation { deleteNote(id: ${ids.bobPublic}) }`), 'NOT_ALLOWED');
      // An earlier field of the same operation may allow a later one.
      const both = await bob.data(
        `mutation { updateNote(id: ${ids.bobPublic}, data: { public: false }) { public } deleteNote(id: ${ids.bobPublic}) }`,
      );
      assert.deepEqual(both, { updateNote: { public: false }, deleteNote: true });
    });

    test('columns are written by those who may, and references lead to rows that the caller may read', async () => {
      await using world = await openNotes(open);
      const { ann, staff, ids } = world;
      const create = (data: string) => `mutation { createNote(data: { title: "n", ${data} }) { id } }`;
      const rank = await ann.ask(create('rank: 1'));
      assert.deepEqual(rank.body.errors?.[0]?.extensions, {
        code: 'NOT_ALLOWED',
        errors: [{ detail: 'the caller may not write "rank"', pointer: '#/rank' }],
      });
      assert.equal(
        await ann.code(`mutation { createNotes(data: [{ title: "a" }, { title: "b", rank: 1 }]) { id } }`),
        'NOT_ALLOWED',
      );
      assert.equal(
        await ann.code(`mutation { updateNote(id: ${ids.annPublic}, data: { rank: 1 }) { id } }`),
        'NOT_ALLOWED',
      );
      assert.equal(
        await ann.code(`mutation { upsertNote(data: { title: "u", rank: 1 }, on: owner_and_title) { id } }`),
        'NOT_ALLOWED',
      );
      // Columns that no client writes are in no input.
      for (const data of ['owner: "ann"', 'state: "done"'])
        assert.match((await ann.ask(create(data))).text, /\\"NoteCreate\\" not to include unknown field/);
      const fixed = await ann.ask(
        `mutation { updateNote(id: ${ids.annPublic}, data: { kind: "x" }) { id } }`,
      );
      assert.match(fixed.text, /\\"NotePatch\\" not to include unknown field/);
      assert.deepEqual(
        (await ann.data(`mutation { createNote(data: { title: "k", kind: "list" }) { owner kind state } }`))
          .createNote,
        {
          owner: 'ann',
          kind: 'list',
          state: 'new',
        },
      );
      const upserted = await ann.data(
        'mutation { upsertNote(data: { title: "a-public", public: false }, on: owner_and_title) { id public } }',
      );
      assert.deepEqual(upserted.upsertNote, { id: String(ids.annPublic), public: false });
      for (const write of [
        (team: number) => `mutation { createNote(data: { title: "ref", team_id: ${team} }) { id } }`,
        (team: number) =>
          `mutation { createNotes(data: [{ title: "ok" }, { title: "ref", team_id: ${team} }]) { id } }`,
        (team: number) =>
          `mutation { upsertNote(data: { title: "ref", team_id: ${team} }, on: owner_and_title) { id } }`,
        (team: number) => `mutation { updateNote(id: ${ids.annPublic}, data: { team_id: ${team} }) { id } }`,
      ]) {
        const [absent, hidden] = [await refused(ann, write(999)), await refused(ann, write(2))];
        assert.deepEqual(hidden, absent);
        assert.match(JSON.stringify(absent), /REFERENCE_MISSING/);
      }
      const comment = (note: number) =>
        `mutation { createComment(data: { text: "x", note_id: ${note} }) { id } }`;
      assert.deepEqual(await refused(ann, comment(ids.bobPrivate)), await refused(ann, comment(999)));
      assert.equal(
        (await staff.data('{ notes(where: { title: { in: ["ok", "ref", "n"] } }) { id } }')).notes.length,
        0,
      );
    });

    test('the result of a write has the row as far as the caller may read it', async () => {
      await using world = await openNotes(open);
      const { ann, staff, anonymous, ids } = world;
      // A comment on somebody else's note may be written and not read.
      const { createComment } = await ann.data(
        `mutation { createComment(data: { text: "hi", note_id: ${ids.bobPublic} }) { id text note { title } } }`,
      );
      assert.equal(createComment, null);
      const { createComments } = await ann.data(
        `mutation { createComments(data: [{ text: "1", note_id: ${ids.bobPublic} }, { text: "2", note_id: ${ids.annPublic} }]) { text author } }`,
      );
      assert.deepEqual(createComments, [null, { text: '2', author: 'ann' }]);
      await staff.data(`mutation { updateNote(id: ${ids.annPublic}, data: { team_id: 2 }) { id } }`);
      const { updateNote } = await ann.data(
        `mutation { updateNote(id: ${ids.annPublic}, data: { title: "kept" }) { title team_id team { name } comments { text } } }`,
      );
      assert.deepEqual(updateNote, {
        title: 'kept',
        team_id: 2,
        team: null,
        comments: [{ text: 'on ann' }, { text: '2' }],
      });
      const unnamed = await anonymous.ask(
        `mutation { createComment(data: { text: "hi", note_id: ${ids.annPublic} }) { __typename } }`,
      );
      assert.equal(
        unnamed.body.errors?.[0]?.extensions?.code,
        'NOT_ALLOWED',
        'there is no name for its author',
      );
    });

    test('uniques and upserts tell nothing of rows that the caller could not write', async () => {
      const relations = declared({
        codes: {
          columns: {
            code: { type: 'text', max: 20, unique: true },
            owner: { type: 'text', max: 20 },
            text: { type: 'text', max: 20, default: '' },
            pin: { type: 'text', max: 20, nullable: true, unique: true, read: { scope: 'staff' } },
          },
          rules: {
            read: { where: { owner: { caller: '/sub' } } },
            create: { where: { owner: { caller: '/sub' } } },
            update: { where: { owner: { caller: '/sub' } } },
          },
        },
      });
      await using world = await open(relations);
      const ann = await world.caller('ann', { sub: 'ann' });
      const bob = await world.caller('bob', { sub: 'bob' });
      await bob.data('mutation { createCode(data: { code: "taken", owner: "bob", pin: "1" }) { id } }');
      const own = await ann.data('mutation { createCode(data: { code: "own", owner: "ann" }) { id } }');
      for (const write of [
        (code: string) => `mutation { createCode(data: { code: "${code}", owner: "bob" }) { id } }`,
        (code: string) => `mutation { createCodes(data: [{ code: "${code}", owner: "bob" }]) { id } }`,
        (code: string) => `mutation { upsertCode(data: { code: "${code}", owner: "bob" }, on: code) { id } }`,
        (code: string) =>
          `mutation { updateCode(id: ${own.createCode.id}, data: { code: "${code}", owner: "bob" }) { id } }`,
      ]) {
        const [used, free] = [await refused(ann, write('taken')), await refused(ann, write('free'))];
        assert.deepEqual(used, free);
        assert.match(JSON.stringify(free), /NOT_ALLOWED/);
      }
      const merge =
        'mutation { upsertCode(data: { code: "taken", owner: "ann", text: "new" }, on: code) { text } }';
      assert.equal(await ann.code(merge), 'TAKEN');
      assert.equal(
        await ann.code(
          'mutation { upsertCode(data: { code: "c", owner: "ann", pin: "1" }, on: pin) { id } }',
        ),
        'NOT_ALLOWED',
      );
      assert.deepEqual((await bob.data('{ codes { code text } }')).codes, [{ code: 'taken', text: '' }]);
    });

    test('a relation that a caller may not use is refused, with or without scopes of others', async () => {
      await using world = await open(NOTES, 'all');
      const plain = await world.caller('plain', { sub: 'p', scope: 'plain:read plain:write' });
      const created = await plain.data('mutation { createPlainOne(data: { text: "x" }) { text } }');
      assert.deepEqual(created.createPlainOne, { text: 'x' });
      const other = await world.caller('other', { sub: 'o' });
      assert.deepEqual(
        [
          (await other.ask('{ plain { text } }')).status,
          (await world.anonymous.ask('{ plain { text } }')).status,
        ],
        [403, 401],
      );
      // Rules let in callers without credentials, although operations need some.
      assert.deepEqual(await world.anonymous.data('{ notes { title } }'), { notes: [] });
      assert.equal((await world.anonymous.ask('{ __typename }')).status, 401);
      // What is wrong with a document is for callers alone.
      assert.equal((await world.anonymous.ask('{ note { titel } }')).status, 401);
      assert.match((await other.ask('{ notes { titel } }')).text, /titel/);
      const wrong = await fetch(world.door.graphql, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer wrong.token.here' },
        body: '{"query":"{ notes { title } }"}',
      });
      assert.equal(wrong.status, 401);
      await wrong.text();
      for (const query of [
        'mutation { deleteTeam(id: 1) }',
        'mutation { updateTeam(id: 1, data: { name: "x" }) { name } }',
        'mutation { createTeam(data: { name: "x" }) { __typename } }',
      ]) {
        assert.deepEqual(
          [(await other.ask(query)).status, await other.code(query)],
          [403, 'NOT_ALLOWED'],
          query,
        );
        assert.equal((await world.anonymous.ask(query)).status, 401);
      }
    });
  });
}
