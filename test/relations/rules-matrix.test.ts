import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Caller, declared, ruledDoors } from '../support/relations/ruled-door.ts';
import { NOTES, openNotes } from '../support/relations/ruled-worlds.ts';

const titles = (reply: { readonly body: readonly { readonly title: string }[] }) =>
  reply.body.map(({ title }) => title).toSorted();

for (const { engine, open } of ruledDoors) {
  describe(`rules on ${engine}`, () => {
    test('each caller sees its rows in lists, counts, rows and exports', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous, nameless } = world;
      const all = ['a-private', 'a-public', 'b-private', 'b-public'];
      const seen: readonly (readonly [Caller, readonly string[]])[] = [
        [anonymous, ['a-public', 'b-public']],
        [nameless, ['a-public', 'b-public']],
        [ann, ['a-private', 'a-public', 'b-public']],
        [bob, ['a-public', 'b-private', 'b-public']],
        [staff, all],
      ];
      for (const [caller, expected] of seen) {
        for (const query of [
          '',
          '?sort=-title',
          '?sort=team.name',
          '?sort=-public,title',
          '?title:prefix=',
        ]) {
          const reply = await caller.get(`/notes${query}`, { prefer: 'count=exact' });
          assert.deepEqual(titles(reply), expected, `${caller.name} ${query}`);
          assert.equal(reply.headers.get('x-total-count'), String(expected.length));
          assert.equal(Object.hasOwn(reply.body[0], 'rank'), caller === staff);
        }
        const lines = await caller.get('/notes', { accept: 'application/x-ndjson' });
        const rows = lines.text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line));
        assert.deepEqual(titles({ body: rows }), expected);
        assert.equal(Object.hasOwn(rows[0], 'rank'), caller === staff);
        const csv = await caller.get('/notes', { accept: 'text/csv' });
        assert.equal(csv.text.split('\r\n').length, expected.length + 2);
        assert.equal(/rank/.test(csv.text), caller === staff);
        for (const [name, id] of Object.entries(world.ids)) {
          const title = {
            annPublic: 'a-public',
            annPrivate: 'a-private',
            bobPublic: 'b-public',
            bobPrivate: 'b-private',
          }[name];
          const reply = await caller.get(`/notes/${id}`);
          assert.equal(reply.status, expected.includes(title ?? '') ? 200 : 404, `${caller.name} ${name}`);
        }
      }
    });

    test('a part of a reference cannot lead to a row that the caller may not read', async () => {
      const root = [{ scope: 'root' }];
      const anyone = { read: 'anyone', create: 'anyone', update: 'anyone', delete: 'anyone' };
      const relations = declared({
        places: {
          key: ['shop', 'nr'],
          columns: { shop: { type: 'integer' }, nr: { type: 'integer' }, open: { type: 'boolean' } },
          rules: { ...anyone, read: [...root, { where: { open: true } }] },
        },
        orders: {
          columns: {
            shop: { type: 'integer', nullable: true },
            nr: { type: 'integer', nullable: true },
            place: { type: 'reference', to: 'places', columns: ['shop', 'nr'], nullable: true },
          },
          rules: anyone,
        },
      });
      await using door = await open(relations);
      const [owner, ann] = [await door.caller('owner', { scope: 'root' }), await door.caller('ann', {})];
      for (const row of [
        { shop: 1, nr: 1, open: true },
        { shop: 1, nr: 2, open: false },
        { shop: 1, nr: 3, open: true },
      ])
        assert.equal((await owner.send('POST', '/places', row)).status, 201);
      for (const row of [
        { shop: 1, nr: 1 },
        { shop: null, nr: 2 },
        { shop: 1, nr: 2 },
      ])
        assert.equal((await owner.send('POST', '/orders', row)).status, 201);
      const change = async (id: number, body: object) => {
        const reply = await ann.send('PATCH', `/orders/${id}`, body);
        return [reply.status, reply.body?.code];
      };
      const missing = [409, 'REFERENCE_MISSING'];
      // The hidden row and none are refused alike.
      assert.deepEqual(await change(1, { nr: 2 }), missing);
      assert.deepEqual(await change(1, { nr: 4 }), missing);
      assert.deepEqual(await change(2, { shop: 1 }), missing);
      assert.deepEqual(await change(1, { nr: 3 }), [200, undefined]);
      // A reference that stays, and one that leads nowhere.
      assert.deepEqual(await change(3, { nr: 2 }), [200, undefined]);
      assert.deepEqual(await change(3, { nr: null }), [200, undefined]);
    });

    test('a column that a caller may not read cannot be named', async () => {
      await using world = await openNotes(open);
      const where = (tree: unknown) => `where=${encodeURIComponent(JSON.stringify(tree))}`;
      const queries = [
        'rank=5',
        'rank:gt=1',
        'rank:null=true',
        'sort=rank',
        'sort=-rank',
        'fields=title,rank',
        where({ rank: 5 }),
        where({ not: { rank: null } }),
        where({ or: [{ title: 'x' }, { rank: { gt: 1 } }] }),
      ];
      for (const caller of [world.anonymous, world.ann, world.nameless]) {
        for (const query of queries) {
          for (const accept of ['application/json', 'text/csv']) {
            if (accept === 'text/csv' && query.startsWith('sort')) continue;
            const reply = await caller.get(`/notes?${query}`, { accept });
            assert.deepEqual([reply.status, reply.body.code], [403, 'NOT_ALLOWED'], query);
            assert.match(reply.body.detail, /"rank", which the caller may not read in rows of notes/);
          }
        }
        for (const path of [
          '/teams?notes.rank=5',
          '/comments?note.rank=5',
          '/comments?sort=note.rank',
          `/notes/${world.ids.bobPublic}?fields=rank`,
        ]) {
          if (caller !== world.ann && path.startsWith('/comments')) continue;
          assert.equal((await caller.get(path)).status, 403, path);
        }
        const removal = await caller.send('DELETE', '/notes?rank=5', undefined, { prefer: 'max-affected=9' });
        assert.ok([401, 403].includes(removal.status), removal.text);
        const star = await caller.get(`/notes/${world.ids.bobPublic}?fields=*`);
        assert.equal(Object.hasOwn(star.body, 'rank'), false);
        const stream = await caller.get('/notes?rank=5', { accept: 'text/event-stream' });
        assert.equal(stream.status, 403);
        // Leniently, the filter is not there.
        const lenient = await caller.get('/notes?rank=5', { prefer: 'handling=lenient' });
        assert.equal(lenient.status, 200);
        assert.ok(lenient.body.length >= 2);
      }
      assert.deepEqual(titles(await world.staff.get('/notes?rank:gte=5&sort=-rank')), [
        'b-private',
        'b-public',
      ]);
    });

    test('a path over references and inverses sees only rows that the caller may read', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous } = world;
      const where = (tree: unknown) => `where=${encodeURIComponent(JSON.stringify(tree))}`;
      // bob's public note belongs to a hidden team.
      assert.deepEqual(titles(await ann.get('/notes?team.name=hidden')), []);
      assert.deepEqual(titles(await ann.get(`/notes?${where({ team: {} })}`)), ['a-public']);
      assert.deepEqual(titles(await ann.get(`/notes?${where({ not: { team: {} } })}`)), [
        'a-private',
        'b-public',
      ]);
      assert.deepEqual(titles(await staff.get('/notes?team.name=hidden')), ['b-public']);
      // A hidden reference sorts as none: last in both directions, in the order of the key.
      for (const sort of ['team.name', '-team.name', 'team.secret,title']) {
        const rows = await ann.get(`/notes?sort=${sort}`);
        assert.equal(rows.body[0].title, 'a-public', sort);
        const first = await ann.get(`/notes?limit=1&sort=${sort}`);
        const walked = [...first.body];
        for (let next = first.links.next; next !== undefined; ) {
          const page = await ann.get(next);
          assert.equal(page.status, 200, page.text);
          walked.push(...page.body);
          next = page.links.next;
        }
        assert.deepEqual(walked, rows.body);
        assert.doesNotMatch(
          Buffer.from((first.links.next ?? '').replace(/.*cursor=n.{22}/, ''), 'base64url').toString(),
          /hidden/,
        );
      }
      // Each caller sees teams by its own notes.
      const names = async (caller: Caller, query: string) =>
        (await caller.get(`/teams?${query}`)).body.map(({ name }: { name: string }) => name);
      assert.deepEqual(await names(ann, 'notes.title=a-public'), ['open']);
      await world.staff.send('PATCH', `/notes/${world.ids.bobPrivate}`, { team_id: 1 });
      assert.deepEqual(await names(ann, 'notes.title=b-private'), []);
      assert.deepEqual(await names(bob, 'notes.title=b-private'), ['open']);
      assert.deepEqual(await names(ann, where({ notes: { every: { title: 'a-public' } } })), ['open']);
      assert.deepEqual(await names(bob, where({ notes: { every: { title: 'a-public' } } })), []);
      assert.deepEqual(await names(ann, where({ notes: { none: { title: 'b-private' } } })), ['open']);
      // Over two relations, through rows that are hidden themselves.
      assert.deepEqual(await names(anonymous, where({ notes: { some: { comments: { some: {} } } } })), []);
      const count = await ann.get('/notes?comments.text=on%20bob', { prefer: 'count=exact' });
      assert.equal(count.headers.get('x-total-count'), '0');
    });

    test('a cursor shows each caller its own rows, and a tag tells of no hidden row', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous, ids } = world;
      const first = await staff.get('/notes?limit=1&sort=title');
      const next = await anonymous.get(first.links.next ?? '');
      assert.deepEqual(titles(next), ['a-public']);
      const page = await anonymous.get('/notes');
      const etag = page.headers.get('etag') ?? '';
      await bob.send('PATCH', `/notes/${ids.bobPrivate}`, { title: 'changed' });
      await bob.send('POST', '/notes', { title: 'one more' });
      const same = await anonymous.get('/notes', { 'if-none-match': etag });
      assert.equal(same.status, 304);
      assert.equal(same.headers.get('etag'), etag);
      const whole = await ann.get('/notes?limit=3');
      assert.equal(whole.links.next, undefined);
      for (const headers of [{ 'if-none-match': '*' }, { 'if-none-match': '"1"' }, {}] as const) {
        const hidden = await ann.get(`/notes/${ids.bobPrivate}`, headers);
        const absent = await ann.get('/notes/999', headers);
        assert.deepEqual([hidden.status, hidden.text], [404, absent.text]);
      }
    });

    test('a hidden row is missing for every write, and one that may not be written is refused', async () => {
      await using world = await openNotes(open);
      const { ann, bob, nameless, anonymous, staff, ids } = world;
      const version = (await staff.get(`/notes/${ids.bobPrivate}`)).headers.get('etag') ?? '';
      const conditions = [{}, { 'if-match': version }, { 'if-match': '"1"' }, { 'if-match': '*' }];
      for (const headers of conditions) {
        for (const [method, body] of [
          ['PATCH', { title: 'stolen' }],
          ['PUT', { title: 'stolen' }],
          ['DELETE', undefined],
        ] as const) {
          const hidden = await ann.send(method, `/notes/${ids.bobPrivate}`, body, headers);
          const absent = await ann.send(method, '/notes/999', body, headers);
          assert.deepEqual(
            [hidden.status, hidden.body.code, hidden.text],
            [absent.status, 'NOT_FOUND', absent.text],
          );
          const readable = await ann.send(method, `/notes/${ids.bobPublic}`, body, headers);
          assert.deepEqual(
            [readable.status, readable.body.code],
            [403, 'NOT_ALLOWED'],
            `${method} ${readable.text}`,
          );
          for (const [caller, status] of [
            [anonymous, 401],
            [nameless, 403],
          ] as const) {
            const id = method === 'DELETE' ? ids.bobPublic : ids.bobPrivate;
            const refused = await caller.send(method, `/notes/${id}`, body, headers);
            assert.equal(refused.status, status, refused.text);
          }
        }
      }
      // The owner's write is under its condition still.
      assert.equal(
        (await bob.send('PATCH', `/notes/${ids.bobPrivate}`, { title: 'mine' }, { 'if-match': '"1"' }))
          .status,
        412,
      );
      assert.equal(
        (await bob.send('PATCH', `/notes/${ids.bobPrivate}`, { title: 'mine' }, { 'if-match': version }))
          .status,
        200,
      );
      // bob may not delete a public note, but may make it private first.
      assert.equal((await bob.send('DELETE', `/notes/${ids.bobPublic}`)).status, 403);
      assert.equal((await bob.send('PATCH', `/notes/${ids.bobPublic}`, { public: false })).status, 200);
      assert.equal((await bob.send('DELETE', `/notes/${ids.bobPublic}`)).status, 204);
      const challenged = await anonymous.send('POST', '/notes', { title: 'x' });
      assert.equal(challenged.status, 401);
      assert.match(challenged.headers.get('www-authenticate') ?? '', /^Bearer/);
      assert.equal((await nameless.send('POST', '/notes', { title: 'x' })).status, 403);
    });

    test('columns are written by those who may, when they may', async () => {
      await using world = await openNotes(open);
      const { ann, staff, ids } = world;
      const refusals: readonly (readonly [unknown, string, RegExp])[] = [
        [{ title: 'n', rank: 1 }, '#/rank', /may not write "rank"/],
        [{ title: 'n', owner: 'ann' }, '#/owner', /"owner" is set by the service/],
        [{ title: 'n', state: 'done' }, '#/state', /"state" is read-only/],
      ];
      for (const [body, pointer, message] of refusals) {
        for (const path of ['/notes', '/notes?on=id']) {
          const reply = await ann.send('POST', path, body);
          assert.deepEqual(
            [reply.status, reply.body.code, reply.body.errors[0].pointer],
            [403, 'NOT_ALLOWED', pointer],
          );
          assert.match(reply.body.errors[0].detail, message);
        }
        const array = await ann.send('POST', '/notes', [{ title: 'ok' }, body]);
        assert.equal(array.body.errors[0].pointer, pointer.replace('#', '#/1'));
        const { title: _, ...patch } = body as Record<string, unknown>;
        assert.equal((await ann.send('PATCH', `/notes/${ids.annPublic}`, patch)).status, 403);
        const put = await ann.send('PUT', `/notes/${ids.annPublic}`, body);
        assert.equal(put.status, 403, put.text);
        const batch = await ann.send('POST', '/_batch', {
          writes: [{ method: 'POST', path: '/notes', body }],
        });
        assert.deepEqual(
          [batch.status, batch.body.errors[0].pointer],
          [403, pointer.replace('#', '#/writes/0/body')],
        );
        const line = await ann.send('POST', '/notes', `${JSON.stringify(body)}\n`, {
          'content-type': 'application/x-ndjson',
        });
        assert.match(line.text, /"code":"NOT_ALLOWED"/);
      }
      const immutable = await ann.send('PATCH', `/notes/${ids.annPublic}`, { kind: 'other' });
      assert.deepEqual([immutable.status, immutable.body.errors[0].pointer], [403, '#/kind']);
      assert.equal((await ann.send('POST', '/notes', { title: 'k', kind: 'list' })).body.kind, 'list');
      await staff.send('PATCH', `/notes/${ids.annPublic}`, { rank: 9 });
      // A whole row leaves what its client cannot write as it is.
      const put = await ann.send('PUT', `/notes/${ids.annPublic}`, { title: 'whole', public: true });
      assert.equal(put.status, 200, put.text);
      assert.deepEqual(Object.keys(put.body), ['id', 'title', 'public', 'owner', 'kind', 'state', 'team_id']);
      const stored = (await staff.get(`/notes/${ids.annPublic}`)).body;
      assert.deepEqual(
        [stored.rank, stored.owner, stored.kind, stored.state, stored.team_id],
        [9, 'ann', 'memo', 'new', null],
      );
      assert.equal(
        (await ann.send('PUT', `/notes/${ids.annPublic}`, { title: 'w', kind: 'memo' })).status,
        200,
      );
      assert.equal(
        (await ann.send('PUT', `/notes/${ids.annPublic}`, { title: 'w', kind: 'else' })).status,
        403,
      );
    });

    test('upserts, batches and references tell of no hidden row', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff, anonymous, ids } = world;
      // A key of a hidden row is taken, as for a create.
      const hidden = await ann.send('POST', '/notes?on=id', { title: 'x' });
      assert.equal(hidden.status, 400);
      const mine = await ann.send('POST', '/notes?on=owner,title', { title: 'a-public', public: false });
      assert.deepEqual([mine.status, mine.body.public, mine.body.id], [200, false, ids.annPublic]);
      const batch = (caller: Caller, ...writes: readonly unknown[]) =>
        caller.send('POST', '/_batch', { writes });
      const write = (method: string, path: string, body?: unknown) => ({ method, path, body });
      const stolen = await batch(
        ann,
        write('POST', '/notes', { title: 'fine' }),
        write('PATCH', `/notes/${ids.bobPrivate}`, { title: 'x' }),
      );
      assert.deepEqual([stolen.status, stolen.body.code], [404, 'NOT_FOUND']);
      const foreign = await batch(
        ann,
        write('POST', '/notes', { title: 'fine' }),
        write('DELETE', `/notes/${ids.bobPublic}`),
      );
      assert.deepEqual([foreign.status, foreign.body.errors[0].pointer], [403, '#/writes/1']);
      assert.equal((await staff.get('/notes?title=fine')).body.length, 0);
      // What an earlier write stores is shown and copied as far as it may be read.
      const copied = await batch(
        ann,
        write('PATCH', `/notes/${ids.annPublic}`, { public: true }),
        write('POST', '/notes', { title: { $result: 0, pointer: '/rank' } }),
      );
      assert.deepEqual([copied.status, copied.body.code], [403, 'NOT_ALLOWED'], copied.text);
      const shown = await batch(ann, write('PATCH', `/notes/${ids.annPublic}`, { public: true }));
      assert.equal(Object.hasOwn(shown.body.results[0].body, 'rank'), false);
      const unread = await batch(
        anonymous,
        write('POST', '/comments', { text: 'hi', note_id: ids.annPublic }),
      );
      assert.equal(unread.status, 403, 'nobody is named as its author');
      const comment = await batch(ann, write('POST', '/comments', { text: 'hi', note_id: ids.bobPublic }));
      assert.deepEqual([comment.body.results[0].status, comment.body.results[0].body], [201, null]);
      // References to hidden and to absent rows are refused in the same words, alone and beside other conflicts.
      for (const [path, body, column] of [
        ['/notes', { title: 'ref' }, 'team_id'],
        ['/notes', { title: 'a-private' }, 'team_id'],
        [`/notes?on=owner,title`, { title: 'ref' }, 'team_id'],
      ] as const) {
        const to = async (id: number) => {
          const single = await ann.send('POST', path, { ...body, [column]: id });
          const inBatch = await batch(ann, write('POST', path, { ...body, [column]: id }));
          const line = await ann.send('POST', '/notes', `${JSON.stringify({ ...body, [column]: id })}\n`, {
            'content-type': 'application/x-ndjson',
          });
          return [single.status, single.text, inBatch.text, path === '/notes' ? line.text : ''];
        };
        const [absent, secret] = [await to(999), await to(2)];
        assert.deepEqual(secret, absent);
        assert.equal(absent[0], 409);
      }
      const patched = async (id: number) =>
        (await ann.send('PATCH', `/notes/${ids.annPublic}`, { team_id: id })).text;
      assert.equal(await patched(2), await patched(999));
      // A hidden row to which a row refers already may stay.
      await staff.send('PATCH', `/notes/${ids.annPublic}`, { team_id: 2 });
      assert.equal(
        (await ann.send('PATCH', `/notes/${ids.annPublic}`, { team_id: 2, title: 'kept' })).status,
        200,
      );
      // Rules over a reference refuse hidden and absent rows alike.
      const comments = async (id: number) =>
        (await ann.send('POST', '/comments', { text: 'x', note_id: id })).text;
      assert.equal(await comments(ids.bobPrivate), await comments(999));
      // Rows that refer are named to those who may read them only.
      const referenced = await staff.send('DELETE', `/notes/${ids.bobPrivate}`);
      assert.deepEqual(
        [referenced.status, referenced.body.errors[0].detail],
        [409, 'rows of other relations refer to this row'],
      );
      assert.equal((await bob.get('/comments')).body.length, 2);
    });

    test('a unique tells nothing of rows that the caller could not create', async () => {
      const relations = declared({
        boxes: {
          one: 'box',
          columns: { owner: { type: 'text', max: 20 }, label: { type: 'text', max: 20 } },
          unique: [['owner', 'label']],
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
      assert.equal((await bob.send('POST', '/boxes', { owner: 'bob', label: 'xtakenx' })).status, 201);
      const own = await ann.send('POST', '/boxes', { owner: 'ann', label: 'xtakenx' });
      assert.equal(own.status, 201);
      const attempts = async (label: string) => {
        const body = { owner: 'bob', label };
        const replies = [
          await ann.send('POST', '/boxes', body),
          await ann.send('POST', '/boxes', [body]),
          await ann.send('POST', '/boxes?on=owner,label', body),
          await ann.send('POST', '/boxes?on=owner,label', body, { prefer: 'resolution=ignore' }),
          await ann.send('POST', '/_batch', { writes: [{ method: 'POST', path: '/boxes', body }] }),
          await ann.send('POST', '/_batch', {
            writes: [
              { method: 'POST', path: '/boxes', body: { ...body, owner: 'ann' } },
              { method: 'POST', path: '/boxes', body: { label, owner: 'bob' } },
            ],
          }),
          await ann.send('PATCH', `/boxes/${own.body.id}`, body),
          await ann.send('PUT', `/boxes/${own.body.id}`, body),
          await ann.send('POST', '/boxes', `${JSON.stringify(body)}\n`, {
            'content-type': 'application/x-ndjson',
          }),
          await ann.send('POST', '/boxes', [body], { prefer: 'transaction=all' }),
        ];
        return replies.map(({ status, text }) => [status, text.replaceAll(label, 'label')]);
      };
      const [used, free] = [await attempts('xtakenx'), await attempts('xfreex')];
      // A batch that stores a row first refuses it where it is taken: that is the caller's own.
      assert.deepEqual(used.toSpliced(5, 1), free.toSpliced(5, 1));
      for (const [status, text] of free) assert.match(`${status} ${text}`, /^403|"code":"NOT_ALLOWED"/);
      assert.equal((await bob.get('/boxes')).body.length, 1);
      assert.equal((await ann.get('/boxes')).body.length, 1);
    });

    test('an upsert neither changes nor shows a hidden row', async () => {
      const relations = declared({
        codes: {
          columns: {
            code: { type: 'text', max: 20, unique: true },
            owner: { type: 'text', max: 20 },
            text: { type: 'text', max: 20, default: '' },
          },
          rules: { read: { where: { owner: { caller: '/sub' } } }, create: 'anyone', update: 'anyone' },
        },
      });
      await using world = await open(relations);
      const ann = await world.caller('ann', { sub: 'ann' });
      const bob = await world.caller('bob', { sub: 'bob' });
      const stored = await bob.send('POST', '/codes', { code: 'b', owner: 'bob', text: 'old' });
      const body = { code: 'b', owner: 'bob', text: 'new' };
      for (const prefer of ['resolution=merge', 'resolution=ignore']) {
        for (const given of [body, [body]]) {
          const reply = await ann.send('POST', '/codes?on=code', given, { prefer });
          assert.deepEqual([reply.status, reply.body.code], [409, 'TAKEN'], reply.text);
        }
        const batch = await ann.send('POST', '/_batch', {
          writes: [{ method: 'POST', path: '/codes?on=code', headers: { prefer }, body }],
        });
        assert.equal(batch.body.code, 'TAKEN', batch.text);
      }
      assert.deepEqual((await bob.get('/codes')).body, [stored.body]);
      const merged = await bob.send('POST', '/codes?on=code', body);
      assert.deepEqual([merged.status, merged.body.text], [200, 'new']);
      const created = await ann.send('POST', '/codes?on=code', { ...body, code: 'c' });
      assert.deepEqual([created.status, created.text], [201, '']);
    });

    test('deletions by a filter remove what the caller may, all or none', async () => {
      await using world = await openNotes(open);
      const { ann, bob, staff } = world;
      const affecting = { prefer: 'max-affected=10' };
      // bob's private note matches too, but is hidden.
      const refused = await ann.send('DELETE', '/notes?title:contains=-', undefined, affecting);
      assert.deepEqual([refused.status, refused.body.code], [403, 'NOT_ALLOWED'], refused.text);
      const removed = await ann.send('DELETE', '/notes?title:contains=private', undefined, affecting);
      assert.deepEqual([removed.status, removed.headers.get('x-total-count')], [204, '1']);
      const none = await ann.send('DELETE', '/notes?title=b-private', undefined, affecting);
      assert.deepEqual([none.status, none.headers.get('x-total-count')], [204, '0']);
      const few = await ann.send('DELETE', '/notes?title:contains=b-', undefined, {
        prefer: 'max-affected=0',
      });
      assert.equal(few.status, 403);
      assert.deepEqual(titles(await staff.get('/notes')), ['a-public', 'b-private', 'b-public']);
      // A missing claim is false under "not", so nameless callers remove nothing.
      const own = await bob.send('DELETE', '/comments/1');
      assert.equal(own.status, 404);
    });

    test('imports report each line by the rules, and exports show no hidden row', async () => {
      await using world = await openNotes(open);
      const { ann, anonymous, staff, ids } = world;
      const ndjson = { 'content-type': 'application/x-ndjson' };
      const lines = [
        { text: 'one', note_id: ids.annPublic },
        { text: 'two', note_id: ids.bobPrivate },
        { text: 'three', note_id: 999 },
        { text: 'four', note_id: ids.bobPublic },
      ];
      const report = await ann.send(
        'POST',
        '/comments',
        lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
        ndjson,
      );
      const rows = report.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.deepEqual(
        rows.map(({ code }) => code),
        [undefined, 'NOT_ALLOWED', 'NOT_ALLOWED', undefined, undefined],
      );
      assert.deepEqual({ ...rows[1], line: 0 }, { ...rows[2], line: 0 });
      assert.deepEqual(rows.at(-1), { created: 2, refused: 2 });
      const whole = await ann.send('POST', '/comments', lines, { prefer: 'transaction=all' });
      assert.equal(whole.status, 403, whole.text);
      const csv = await ann.send('POST', '/notes', 'title,team_id\nc1,1\nc2,2\nc3,\n', {
        'content-type': 'text/csv',
      });
      assert.match(csv.text, /"line":3,"code":"REFERENCE_MISSING"/);
      assert.deepEqual(
        (await staff.get('/notes?title:prefix=c')).body.map(({ owner }: { owner: string }) => owner),
        ['ann', 'ann'],
      );
      const refused = await anonymous.send('POST', '/notes', 'title\nx\n', { 'content-type': 'text/csv' });
      assert.equal(refused.status, 401);
    });

    test('a repeated create shows its row as the caller may read it now', async () => {
      await using world = await openNotes(open);
      const { ann, staff } = world;
      const key = { 'idempotency-key': 'k1' };
      const first = await ann.send('POST', '/notes', { title: 'once' }, key);
      assert.equal(first.status, 201);
      assert.equal((await ann.send('POST', '/notes', { title: 'once' }, key)).text, first.text);
      // Another caller has keys of its own.
      const other = await world.bob.send('POST', '/notes', { title: 'once' }, key);
      assert.notEqual(other.body.id, first.body.id);
      await staff.send('PATCH', `/notes/${first.body.id}`, { rank: 3 });
      const promoted = await world.caller('ann', { sub: 'ann', scope: 'staff' });
      const replayed = await promoted.send('POST', '/notes', { title: 'once' }, key);
      assert.equal(replayed.body.rank, 3, replayed.text);
      assert.equal(
        Object.hasOwn((await ann.send('POST', '/notes', { title: 'once' }, key)).body, 'rank'),
        false,
      );
      const many = await ann.send('POST', '/notes', [{ title: 'm1' }, { title: 'm2' }], {
        'idempotency-key': 'k2',
      });
      const again = await ann.send('POST', '/notes', [{ title: 'm1' }, { title: 'm2' }], {
        'idempotency-key': 'k2',
      });
      assert.deepEqual([again.status, again.text], [201, many.text]);
    });

    test('relations without rules follow their scopes, also where others cross to them', async () => {
      await using world = await open(NOTES, 'all');
      const plain = await world.caller('plain', { sub: 'p', scope: 'plain:read plain:write' });
      assert.equal((await plain.send('POST', '/plain', { text: 'x' })).status, 201);
      assert.equal((await plain.get('/plain')).body.length, 1);
      const other = await world.caller('other', { sub: 'o' });
      assert.deepEqual(
        [(await other.get('/plain')).status, (await world.anonymous.get('/plain')).status],
        [403, 401],
      );
      // Rules let in who has no credentials, although operations need some.
      assert.equal((await world.anonymous.get('/notes')).status, 200);
      const batch = await other.send('POST', '/_batch', {
        writes: [{ method: 'POST', path: '/plain', body: { text: 'y' } }],
      });
      assert.equal(batch.status, 403);
      const wrong = await world.anonymous.get('/notes', { authorization: 'Bearer wrong.token.here' });
      assert.equal(wrong.status, 401);
    });
  });
}
