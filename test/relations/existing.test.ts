import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Engine } from '../../src/sql/schema/tables.ts';
import { AUDIENCE, ISSUER, startIssuer } from '../access/support/tokens.ts';
import { declared, shopTables } from '../support/relations/existing.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const relations = (more: object = {}) => ({
  Artist: {
    existing: true,
    one: 'ArtistRow',
    key: ['ArtistId'],
    columns: { ArtistId: { type: 'serial', open: true }, Name: { type: 'text', max: 120, nullable: true } },
  },
  Album: {
    existing: true,
    one: 'AlbumRow',
    key: ['AlbumId'],
    columns: {
      AlbumId: { type: 'serial', open: true },
      Title: { type: 'text', max: 160 },
      Artist: { type: 'reference', to: 'Artist', columns: ['ArtistId'], onDelete: 'cascade' },
      Price: { type: 'decimal', precision: 10, scale: 2, min: '0.00', default: '9.90' },
      Released: { type: 'timestamp', nullable: true },
      Mood: { type: 'enum', values: ['sad', 'ok'], nullable: true },
      Label: { type: 'text', max: 40, generated: 'by default' },
      Initial: { type: 'text', max: 1, nullable: true, generated: 'always' },
    },
    unique: [['ArtistId', 'Title']],
    indexes: [['ArtistId'], ['Price']],
  },
  Track_List: {
    existing: true,
    one: 'Track_ListRow',
    table: 'Track List',
    key: ['AlbumId', 'Nr'],
    columns: {
      Album: { type: 'reference', to: 'Album', columns: ['AlbumId'] },
      Nr: { type: 'integer' },
      Name: { type: 'text', max: 80 },
    },
  },
  ...more,
});

for (const [engine, open] of Object.entries(relationDoors)) {
  const before = shopTables(engine as Engine);
  const openShop = (options: Parameters<typeof open>[1] = {}): Promise<RelationDoor> =>
    open(declared(relations()), { before, ...options });

  test(`rows of existing tables are listed, found and embedded, on ${engine}`, async () => {
    await using door = await openShop();
    const first = await door.get('/Album/1');
    assert.deepEqual(first.body, {
      AlbumId: 1,
      Title: 'First',
      ArtistId: 1,
      Price: '5.50',
      Released: '2009-01-02T03:04:05.000Z',
      Mood: 'ok',
      Label: engine === 'sqlite' ? 'X' : first.body.Label,
      Initial: 'F',
    });
    const ids = async (query: string) => {
      const { status, body, text } = await door.get(`/Album?fields=AlbumId&${query}`);
      assert.equal(status, 200, text);
      return body.map(({ AlbumId }: { AlbumId: number }) => AlbumId);
    };
    assert.deepEqual(await ids(''), [1, 2, 3]);
    assert.deepEqual(await ids('sort=-Price'), [2, 3, 1]);
    assert.deepEqual(await ids('Price=7.25'), [3]);
    assert.deepEqual(await ids('Price=7.25&Price=5.5'), [1, 3]);
    assert.deepEqual(await ids('Price:gt=5.5&Price:lt=12'), [3]);
    assert.deepEqual(await ids('Released=2010-01-01T00:00:00Z'), [3]);
    assert.deepEqual(await ids('Released=2010-01-01T00:00:00Z&Released=2009-01-02T03:04:05Z'), [1, 3]);
    assert.deepEqual(await ids('sort=Released'), [1, 3, 2]);
    assert.deepEqual(await ids('Mood=ok'), [1]);
    assert.deepEqual(await ids('Title:prefix=%C3%84'), [3]);
    assert.deepEqual(await ids('Title:contains=con'), [2]);
    assert.deepEqual(await ids('Artist.Name=Ada&sort=-Title'), [2, 1]);
    assert.deepEqual(await ids('Track_List.Name=Only'), [3]);
    const pages: number[] = [];
    for (let path: string | undefined = '/Album?fields=AlbumId&limit=1&sort=Released'; path; ) {
      const page = await door.get(path);
      pages.push(...page.body.map(({ AlbumId }: { AlbumId: number }) => AlbumId));
      path = page.links.next?.replace(door.url, '');
    }
    assert.deepEqual(pages, [1, 3, 2]);
    const nested = await door.get('/Album/1?fields=Title,Artist(Name),Track_List(Nr,Name)');
    assert.deepEqual(nested.body, {
      Title: 'First',
      Artist: { Name: 'Ada' },
      Track_List: [
        { Nr: 1, Name: 'One' },
        { Nr: 2, Name: 'Two' },
      ],
    });
    const sums = await door.get('/Album?aggregate=count,sum(Price),max(Released)&group=ArtistId');
    assert.deepEqual(sums.body, [
      { ArtistId: 1, count: 2, sum: { Price: '17.50' }, max: { Released: '2009-01-02T03:04:05.000Z' } },
      { ArtistId: 2, count: 1, sum: { Price: '7.25' }, max: { Released: '2010-01-01T00:00:00.000Z' } },
    ]);
    const csv = await door.get('/Album?fields=AlbumId,Price,Released,Mood', { accept: 'text/csv' });
    assert.equal(csv.text.split('\r\n')[1], '1,5.50,2009-01-02T03:04:05.000Z,"ok"');
  });

  test(`rows of existing tables are written, on ${engine}`, async () => {
    await using door = await openShop();
    const created = await door.send('POST', '/Album', { Title: 'Third', ArtistId: 2, Mood: 'sad' });
    assert.equal(created.status, 201, created.text);
    const { AlbumId, Label, ...rest } = created.body;
    assert.deepEqual(rest, {
      Title: 'Third',
      ArtistId: 2,
      Price: '9.90',
      Released: null,
      Mood: 'sad',
      Initial: 'T',
    });
    assert.ok(AlbumId > 3 && Label !== '');
    assert.deepEqual((await door.get(`/Album/${AlbumId}`)).body, created.body);

    const released = '2020-02-29T12:00:00.250Z';
    const put = await door.send('PUT', `/Album/${AlbumId}`, {
      Title: 'Put',
      ArtistId: 2,
      Released: released,
    });
    assert.equal(put.status, 200, put.text);
    assert.deepEqual([put.body.Released, put.body.Mood, put.body.Label], [released, null, Label]);
    const fresh = await door.send('PUT', '/Album/77', { Title: 'Given', ArtistId: 1 });
    assert.equal(fresh.status, 201, fresh.text);
    const after = await door.send('POST', '/Album', { Title: 'After', ArtistId: 1 });
    assert.ok(after.body.AlbumId > 77);

    const upsert = (body: object) => door.send('POST', '/Album?on=ArtistId,Title', body);
    const merged = await upsert({ Title: 'Given', ArtistId: 1, Price: '1.00' });
    assert.deepEqual([merged.status, merged.body.AlbumId, merged.body.Price], [200, 77, '1.00'], merged.text);
    assert.equal((await upsert({ Title: 'New', ArtistId: 1 })).status, 201);

    const tree = await door.send('POST', '/Album', {
      Title: 'Tree',
      Artist: { Name: 'Eve' },
      Track_List: [{ Nr: 1, Name: 'a' }],
    });
    assert.equal(tree.status, 201, tree.text);
    assert.deepEqual([tree.body.Artist.Name, tree.body.Track_List[0].Name], ['Eve', 'a']);

    const key = { 'idempotency-key': 'once' };
    const once = await door.send('POST', '/Album', { Title: 'Once', ArtistId: 1 }, key);
    const twice = await door.send('POST', '/Album', { Title: 'Once', ArtistId: 1 }, key);
    assert.deepEqual([once.status, twice.status, twice.body], [201, 201, once.body]);

    const several = await door.send('POST', '/_batch', {
      writes: [
        { method: 'POST', path: '/Artist', body: { Name: 'Fay' } },
        {
          method: 'POST',
          path: '/Album',
          body: { Title: 'B', ArtistId: { $result: 0, pointer: '/ArtistId' } },
        },
      ],
    });
    assert.equal(several.status, 200, several.text);
    const imported = await door.send('POST', '/Album', 'Title,ArtistId\nI1,1\nI2,9\n', {
      'content-type': 'text/csv',
    });
    assert.match(imported.text, /"code":"REFERENCE_MISSING"[\s\S]*\{"created":1,"refused":1\}/);

    const lines = 'Title,ArtistId,Label\nSame,1,Same\nFine,1,x\nFirst,1,y\n';
    const others = await door.send('POST', '/Album', lines, { 'content-type': 'text/csv' });
    assert.match(
      others.text,
      /"line":2,"code":"INVALID_ROW","reason":"The constraint [^,]*Other[\s\S]*"line":4,"code":"TAKEN"[\s\S]*\{"created":1,"refused":2\}/,
    );
    const whole = { 'content-type': 'text/csv', prefer: 'transaction=all' };
    assert.equal(
      (await door.send('POST', '/Album', 'Title,ArtistId,Label\nS,1,S\nT,1,x\n', whole)).status,
      400,
    );

    assert.equal((await door.send('DELETE', '/Track_List/1,2')).status, 204);
    assert.equal((await door.get('/Track_List/1,2')).status, 404);
  });

  test(`a change of an existing row needs the version that was read, on ${engine}`, async () => {
    await using door = await openShop();
    const { headers } = await door.get('/Album/1');
    const match = { 'if-match': headers.get('etag') ?? '' };
    assert.equal(headers.get('last-modified'), null);
    assert.equal((await door.get('/Album/1', { 'if-none-match': match['if-match'] })).status, 304);
    const changed = await door.send('PATCH', '/Album/1', { Price: '6.00' }, match);
    assert.deepEqual([changed.status, changed.body.Price], [200, '6.00'], changed.text);
    const late = await door.send('PATCH', '/Album/1', { Price: '7.00' }, match);
    assert.equal(late.body.code, 'PRECONDITION_FAILED');
    assert.equal((await door.send('DELETE', '/Track_List/1,1', undefined, match)).status, 412);
    const next = { 'if-match': changed.headers.get('etag') ?? '' };
    // Another program changes the row.
    await door.run(`UPDATE "Album" SET "Title" = 'Elsewhere' WHERE "AlbumId" = 1`);
    assert.equal((await door.send('PATCH', '/Album/1', { Price: '8.00' }, next)).status, 412);
    assert.equal((await door.send('PATCH', '/Album/1', {}, {})).status, 200);
    const read = { 'if-match': (await door.get('/Album/1')).headers.get('etag') ?? '' };
    assert.equal((await door.send('PUT', '/Album/1', { Title: 'Put', ArtistId: 1 }, read)).status, 200);
  });

  test(`constraints of the database are told by their columns, on ${engine}`, async () => {
    const unique = `CREATE UNIQUE INDEX "ArtistName" ON "Artist" ("Name")`;
    await using door = await openShop({ before: `${before}; ${unique}` });
    const refused = async (method: string, path: string, body?: object) => {
      const reply = await door.send(method, path, body);
      assert.ok(reply.status >= 400 && reply.status < 500, reply.text);
      assert.doesNotMatch(reply.text, /violates|constraint failed|SQLITE/);
      return [
        reply.status,
        reply.body.code,
        ...(reply.body.errors ?? []).map(({ pointer }: { pointer: string }) => pointer),
      ];
    };
    const album = { Title: 'A', ArtistId: 1 };
    assert.deepEqual(await refused('POST', '/Album', { ...album, Title: 'First' }), [
      409,
      'TAKEN',
      '#/ArtistId',
      '#/Title',
    ]);
    assert.deepEqual(await refused('POST', '/Album', { ...album, ArtistId: 9 }), [
      409,
      'REFERENCE_MISSING',
      '#/ArtistId',
    ]);
    assert.deepEqual(await refused('POST', '/Album', { ...album, Price: '-1' }), [
      400,
      'INVALID_ROW',
      '#/Price',
    ]);
    assert.deepEqual(await refused('POST', '/Album', { ...album, Mood: 'odd' }), [
      400,
      'INVALID_ROW',
      '#/Mood',
    ]);
    assert.deepEqual(await refused('POST', '/Album', { ...album, Initial: 'x' }), [
      400,
      'INVALID_ROW',
      '#/Initial',
    ]);
    // The declaration does not have these.
    assert.deepEqual(await refused('POST', '/Album', { ...album, Label: 'A' }), [
      400,
      'INVALID_ROW',
      '#/Title',
      '#/Label',
    ]);
    assert.deepEqual(await refused('PATCH', '/Album/1', { Label: 'First' }), [
      400,
      'INVALID_ROW',
      '#/Title',
      '#/Label',
    ]);
    assert.deepEqual(await refused('POST', '/Track_List', { AlbumId: 1, Nr: 0, Name: 'x' }), [
      400,
      'INVALID_ROW',
      '#/Nr',
    ]);
    assert.deepEqual(await refused('DELETE', '/Album/1'), [409, 'REFERENCED', '#']);
    assert.deepEqual(await refused('POST', '/Artist', { Name: 'Ada' }), [409, 'TAKEN', '#/Name']);
  });

  test(`GraphQL serves rows of existing tables, on ${engine}`, async () => {
    await using door = await openShop({ graphql: true });
    const ask = async (query: string) => {
      const body = JSON.stringify({ query });
      const reply = await fetch(door.graphql, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
      return (await reply.json()) as any;
    };
    const read = await ask(`{
      Album(where: { Artist: { Name: { eq: "Ada" } } }, orderBy: [{ Price: DESC }]) {
        _version Title Mood Released Artist { Name Album { AlbumId _version } } Track_List { Name } }
      one: AlbumRow(AlbumId: 1) { _version Price }
    }`);
    assert.equal(read.errors, undefined, JSON.stringify(read));
    const { Album, one } = read.data;
    assert.deepEqual(
      Album.map(({ Title }: { Title: string }) => Title),
      ['Second', 'First'],
    );
    assert.deepEqual(Album[1].Track_List, [{ Name: 'One' }, { Name: 'Two' }]);
    assert.equal(Album[1]._version, one._version);
    assert.ok(Album[0].Artist.Album.some(({ _version }: { _version: number }) => _version === one._version));
    const update = (version: number) =>
      ask(
        `mutation { updateAlbumRow(AlbumId: 1, data: { Price: "2.00" }, ifVersion: ${version}) { Price _version } }`,
      );
    const changed = await update(one._version);
    assert.equal(changed.data.updateAlbumRow.Price, '2.00', JSON.stringify(changed));
    assert.equal((await update(one._version)).errors[0].extensions.code, 'PRECONDITION_FAILED');
    assert.ok(await update(changed.data.updateAlbumRow._version));
    const refused = await ask(
      `mutation { createAlbumRow(data: { Title: "A", Label: "A", ArtistId: 1 }) { AlbumId } }`,
    );
    assert.equal(refused.errors[0].extensions.code, 'INVALID_ROW');
    assert.equal(door.schema?.getSubscriptionType()?.getFields().AlbumRowCreated, undefined);
  });

  test(`an existing table has no feed of changes, on ${engine}`, async () => {
    await using door = await openShop();
    const stream = await door.get('/Album', { accept: 'text/event-stream' });
    assert.equal(stream.status, 406);
    assert.match(stream.body.detail, /Album is a table of another program, and nothing records its changes/);
    assert.equal((await door.get('/_changes?relation=Album')).status, 400);
  });

  test(`a view is a relation whose rows are only read, on ${engine}`, async () => {
    const view = `CREATE VIEW cheap AS SELECT "AlbumId" AS id, "Title" AS title, "Price" * 1 AS price, "ArtistId" AS artist_id FROM "Album" WHERE "Price" < 10`;
    const data = relations({
      cheap: {
        existing: true,
        key: ['id'],
        one: 'bargain',
        columns: {
          id: { type: 'integer' },
          title: { type: 'text', max: 160, nullable: true },
          price: { type: 'decimal', precision: 10, scale: 2 },
          artist: { type: 'reference', to: 'Artist' },
        },
      },
    });
    // An expression of PostgreSQL has no size.
    const made = engine === 'postgres' ? view.replace('"Price" * 1', '("Price" * 1)::numeric(10,2)') : view;
    await using door = await open(declared(data), { before: `${before}; ${made}`, graphql: true });
    const list = await door.get('/cheap?sort=-price&fields=id,price,artist(Name)');
    assert.deepEqual(
      list.body,
      [
        { id: 3, price: '7.25', artist: { Name: 'Bob' } },
        { id: 1, price: '5.50', artist: { Name: 'Ada' } },
      ],
      list.text,
    );
    const row = await door.get('/cheap/1');
    assert.equal(row.status, 200);
    const tag = { 'if-none-match': row.headers.get('etag') ?? '' };
    assert.equal((await door.get('/cheap/1', tag)).status, 304);
    await door.run(`UPDATE "Album" SET "Price" = 4 WHERE "AlbumId" = 1`);
    assert.equal((await door.get('/cheap/1', tag)).body.price, '4.00');
    assert.deepEqual((await door.get('/Artist/1?fields=cheap(title)')).body, { cheap: [{ title: 'First' }] });
    for (const [method, path] of [
      ['POST', '/cheap'],
      ['PATCH', '/cheap/1'],
      ['PUT', '/cheap/1'],
      ['DELETE', '/cheap/1'],
    ] as const)
      assert.equal((await door.send(method, path, { title: 'x' })).status, 405, method);
    const batch = await door.send('POST', '/_batch', { writes: [{ method: 'DELETE', path: '/cheap/1' }] });
    assert.deepEqual(
      [batch.status, batch.body.errors[0].detail],
      [400, 'cheap is a view, whose rows are only read'],
      batch.text,
    );
    assert.equal(door.schema?.getMutationType()?.getFields().createBargain, undefined);
    assert.ok(door.schema?.getQueryType()?.getFields().bargain);
  });

  test(`the start lists every difference between a declaration and its tables, on ${engine}`, async () => {
    const data = relations({
      staff: {
        existing: true,
        one: 'person',
        columns: {
          id: { type: 'serial', open: true },
          name: { type: 'number' },
          boss: { type: 'integer' },
          nick: { type: 'text' },
        },
        key: ['id'],
        unique: [['name']],
        indexes: [['boss']],
      },
      Gone: { existing: true, one: 'GoneRow', key: ['x'], columns: { x: { type: 'integer' } } },
    });
    const Album = data.Album as { columns: Record<string, unknown> };
    Album.columns.Title = { type: 'text', max: 20, nullable: true, generated: 'by default' };
    Album.columns.Initial = { type: 'text', max: 1, nullable: true };
    Album.columns.Artist = { type: 'reference', to: 'Artist', columns: ['ArtistId'] };
    const opened = open(declared(data), { before });
    await assert.rejects(opened, (error: Error) => {
      const name = engine === 'sqlite' ? 'VARCHAR(40)' : 'character varying(40)';
      assert.deepEqual(error.message.split('\n  ').slice(1), [
        'Album.Title: is NOT NULL in the database; remove nullable',
        'Album.Title: has no default in the database; remove generated',
        'Album.Initial: is computed by the database; declare generated: "always"',
        'Album: Artist is removed otherwise in the database; declare onDelete: "cascade"',
        `staff.name: is ${name} in the database; declare it as {"type":"text","max":40}`,
        'staff.boss: may be null in the database; declare it nullable',
        'staff.nick: the table has no such column; remove it',
        'staff: the database has no unique constraint (name); remove it, or create it',
        'staff: the database has no index (boss); remove it, or create it',
        'Gone: the database has no table Gone; correct the name, or remove the relation',
      ]);
      return true;
    });
  });

  test(`times with more digits than clients see are listed once each, on ${engine}`, async () => {
    const type = engine === 'postgres' ? 'timestamptz' : 'TIMESTAMP';
    const at = (digits: string) => `'2020-01-01 00:00:00.${digits}${engine === 'postgres' ? '+00' : ''}'`;
    const sql = `
      CREATE TABLE events (id INTEGER PRIMARY KEY, at ${type} NOT NULL);
      CREATE INDEX events_at ON events (at);
      INSERT INTO events VALUES (1, ${at('0009')}), (2, ${at('0001')}), (3, ${at('001')}), (4, ${at('0005')})`;
    const events = {
      existing: true,
      key: ['id'],
      columns: { id: { type: 'integer' }, at: { type: 'timestamp' } },
      indexes: [['at']],
    };
    await using door = await open(declared({ events }), { before: sql });
    const found: number[] = [];
    for (let path: string | undefined = '/events?sort=at&limit=1'; path; ) {
      const page = await door.get(path);
      found.push(...page.body.map(({ id }: { id: number }) => id));
      assert.ok(found.length <= 4, String(found));
      path = page.links.next?.replace(door.url, '');
    }
    assert.equal(found.toSorted().join(), '1,2,3,4');
    const first = (await door.get('/events/2')).body.at;
    const same = await door.get(`/events?at=${first}`);
    assert.ok(
      same.body.some(({ id }: { id: number }) => id === 2),
      same.text,
    );
  });

  for (const hooks of ['with', 'without'])
    test(`rules hold for existing tables ${hooks} hooks, on ${engine}`, async () => {
      const data = relations() as Record<string, object>;
      const seen: string[] = [];
      const artists = {
        ...data.Artist,
        rules: {
          read: 'anyone',
          create: 'anyone',
          update: { where: { Name: { ne: 'Ada' } } },
          delete: 'nobody',
        },
        ...(hooks === 'with' && {
          before: {
            update({ changes }: { changes: { Name?: string } }) {
              seen.push(String(changes.Name));
            },
          },
        }),
      };
      const withRules = declared({
        ...data,
        Artist: artists,
        Album: { ...data.Album, rules: { read: 'anyone' } },
      });
      await using issuer = await startIssuer();
      const api = {
        required: 'write',
        jwt: { issuer: ISSUER, audience: AUDIENCE, jwks: issuer.url },
      } as const;
      await using door = await open(withRules, { before, api });
      const headers = { authorization: `Bearer ${await issuer.sign({})}` };
      const code = async (method: string, path: string, body?: object) => {
        const reply = await door.send(method, path, body, headers);
        return reply.status < 300 ? reply.status : reply.body.code;
      };
      assert.equal(await code('PATCH', '/Artist/2', { Name: 'Bea' }), 200);
      assert.equal(await code('PATCH', '/Artist/1', { Name: 'Eve' }), 'NOT_ALLOWED');
      assert.equal(await code('DELETE', '/Artist/2'), 'NOT_ALLOWED');
      assert.equal(await code('POST', '/Album', { Title: 'x', ArtistId: 2 }), 'NOT_ALLOWED');
      // A row that is there follows one rule, a new one another.
      const upsert = (ArtistId: number, Name: string) =>
        code('POST', '/Artist?on=ArtistId', { ArtistId, Name });
      assert.deepEqual(
        [await upsert(2, 'Cat'), await upsert(1, 'Eve'), await upsert(9, 'Ada'), await upsert(9, 'Eve')],
        [200, 'NOT_ALLOWED', 201, 'NOT_ALLOWED'],
      );
      assert.equal(await code('PUT', '/Artist/2', { Name: 'Dot' }), 200);
      assert.equal(await code('PUT', '/Artist/30', { Name: 'Ada' }), 201);
      assert.equal(await code('PUT', '/Artist/30', { Name: 'Eve' }), 'NOT_ALLOWED');
      assert.equal(seen.includes('Bea'), hooks === 'with');
    });
}

test('health names the relations without a feed, and nothing where all have one', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'shop.db');
  const db = new DatabaseSync(file);
  db.exec('CREATE TABLE "Album" ("AlbumId" INTEGER PRIMARY KEY, "Title" TEXT NOT NULL)');
  db.close();
  const show = async (module: string) => {
    await using service = await startTestService({
      module,
      env: { DATABASE_URL: `sqlite:${file}` },
      listens: true,
    });
    const reply = await fetch(`${service.urls.management}/actuator/health`);
    return ((await reply.json()) as { readonly components: Readonly<Record<string, unknown>> }).components
      .relations;
  };
  assert.deepEqual(await show(`export default { relations: 'introspect' };`), {
    status: 'UP',
    details: { withoutChanges: ['Album'] },
  });
  const own = `export default { relations: { notes: { columns: { title: { type: 'text', max: 9 } } } } };`;
  assert.equal(await show(own), undefined);
});
