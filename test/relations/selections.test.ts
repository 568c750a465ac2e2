import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRowList } from '../../src/relations/rows/row-lists.ts';
import { RowFormat, type RowStores } from '../../src/relations/rows/rows.ts';
import { SelectionLimitError } from '../../src/relations/selections/limits.ts';
import { engines } from '../support/databases.ts';
import { SHOP_ROWS, shop } from '../support/relations/shop.ts';

async function fill(stores: RowStores): Promise<void> {
  for (const [name, rows] of Object.entries(SHOP_ROWS)) {
    const store = stores.get(name);
    assert.ok(store !== undefined);
    const format = new RowFormat(store.relation);
    const faults: never[] = [];
    await store.create(rows.map((row) => format.readRow(row, { caller: undefined, faults })));
    assert.deepEqual(faults, []);
  }
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`rows within rows, on ${engine}`, async () => {
    const relations = shop;
    const byName = new Map(relations.map((relation) => [relation.name, relation]));
    let stores: RowStores;

    /** The rows of a list, with parameters as REST takes them. */
    const list = async (name: string, query: Readonly<Record<string, string>>) => {
      const store = stores.get(name);
      assert.ok(store !== undefined);
      const shape = readRowList(byName, store.relation, query, false);
      const page = await store.lists.page({ shape, limit: shape.limit, next: undefined, backwards: false });
      return JSON.parse(`[${page.json}]`) as unknown[];
    };

    test('all of it', async (t) => {
      await using store = await open();
      ({ stores } = await store.current.openRelations(relations));
      await fill(stores);

      await t.test('a reference is an object or null, an inverse an array', async () => {
        assert.deepEqual(await list('albums', { fields: 'title,artist(name),tracks(title)', limit: '2' }), [
          { title: 'One', artist: { name: 'Ada' }, tracks: [{ title: 'a' }, { title: 'b' }, { title: 'c' }] },
          { title: 'Two', artist: { name: 'Ada' }, tracks: [] },
        ]);
        assert.deepEqual(await list('clerks', { fields: 'name,chief(name)', limit: '2' }), [
          { name: 'top', chief: null },
          { name: 'left', chief: { name: 'top' } },
        ]);
      });

      await t.test('a value is written as in its own list', async () => {
        const own = (await list('tracks', {})) as { readonly album_id: number }[];
        const albums = (await list('albums', { fields: 'id,tracks(*)' })) as {
          id: number;
          tracks: unknown[];
        }[];
        for (const { id, tracks } of albums)
          assert.deepEqual(
            tracks,
            own.filter(({ album_id }) => album_id === id),
          );
      });

      await t.test('four levels down, and back', async () => {
        const fields = 'artist(albums(tracks(album(title))))';
        const [, , third] = await list('albums', { fields });
        const inner = [{ album: { title: 'Three "3"' } }];
        assert.deepEqual(third, { artist: { albums: [{ tracks: inner }] } });
      });

      await t.test('a relation refers to itself', async () => {
        const [top] = await list('clerks', {
          fields: 'name,team(name,team(name),chief(name))',
          'chief_id:null': 'true',
        });
        const team = [
          { name: 'left', team: [{ name: 'leaf' }], chief: { name: 'top' } },
          { name: 'right', team: [], chief: { name: 'top' } },
        ];
        assert.deepEqual(top, { name: 'top', team });
      });

      await t.test('limits, orders and filters are those of each array', async () => {
        const fields = 'title,tracks(nr)';
        const tracks = async (more: Readonly<Record<string, string>>) =>
          (await list('albums', { fields, ...more })).map((album) =>
            (album as { tracks: { nr: number }[] }).tracks.map(({ nr }) => nr),
          );
        assert.deepEqual(await tracks({ 'embed.tracks.limit': '2' }), [[1, 2], [], [1]]);
        assert.deepEqual(await tracks({ 'embed.tracks.sort': '-nr' }), [[3, 2, 1], [], [1]]);
        assert.deepEqual(await tracks({ 'embed.tracks.sort': '-nr', 'embed.tracks.limit': '1' }), [
          [3],
          [],
          [1],
        ]);
        assert.deepEqual(await tracks({ 'embed.tracks.sort': 'seconds', 'embed.tracks.limit': '3' }), [
          [1, 3, 2],
          [],
          [1],
        ]);
        assert.deepEqual(await tracks({ 'embed.tracks.title': 'b' }), [[2], [], []]);
        assert.deepEqual(await tracks({ 'embed.tracks.nr:gt': '1', 'embed.tracks.limit': '1' }), [
          [2],
          [],
          [],
        ]);
        assert.deepEqual(await tracks({ 'embed.tracks.album.title:prefix': 'T' }), [[], [], [1]]);
        assert.deepEqual(
          await tracks({ 'embed.tracks.where': '{"seconds":{"isNull":false}}', title: 'One' }),
          [[1, 3]],
        );
      });

      await t.test('rows are found through others', async () => {
        const fields = 'name,tracks(title,album(title))';
        assert.deepEqual(await list('playlists', { fields }), [
          { name: 'empty', tracks: [] },
          {
            name: 'mixed',
            tracks: [
              { title: 'b', album: { title: 'One' } },
              { title: 'é', album: { title: 'Three "3"' } },
            ],
          },
          { name: 'short', tracks: [{ title: 'b', album: { title: 'One' } }] },
        ]);
        const sorted = { fields: 'tracks(title)', 'embed.tracks.sort': '-title', 'embed.tracks.limit': '1' };
        assert.deepEqual(await list('playlists', sorted), [
          { tracks: [] },
          { tracks: [{ title: 'é' }] },
          { tracks: [{ title: 'b' }] },
        ]);
        assert.deepEqual(await list('playlists', { fields: 'name', 'tracks.title': 'é' }), [
          { name: 'mixed' },
        ]);
        const none = { fields: 'name', where: '{"tracks":{"none":{"title":"é"}}}' };
        assert.deepEqual(await list('playlists', none), [{ name: 'empty' }, { name: 'short' }]);
      });

      await t.test('an array begins behind a row, and a member has another name', async () => {
        const albums = stores.get('albums');
        const tracks = byName.get('tracks');
        assert.ok(albums !== undefined && tracks !== undefined);
        const shape = readRowList(
          byName,
          albums.relation,
          { fields: 'tracks(nr)', 'embed.tracks.sort': 'seconds' },
          false,
        );
        const [member] = shape.selection?.members ?? [];
        assert.ok(member?.is === 'rows' && shape.selection !== undefined);
        const rows = { ...member.rows, after: [3, 1, 3], limit: 5 };
        const members = [
          { ...member, name: 'rest', rows },
          { is: 'constant', name: '__typename', json: '"Album"' },
          { is: 'column', name: 'number', column: 0 },
        ] as const;
        const json = await albums.lists.read([1], { ...shape.selection, members });
        assert.equal(json, '{"rest":[{"nr":2}],"__typename":"Album","number":1}');
        assert.equal(await albums.lists.read([9], { ...shape.selection, members }), undefined);
      });

      await t.test('too many rows are refused, not cut', async () => {
        const tracks = stores.get('tracks');
        assert.ok(tracks !== undefined);
        const more = Array.from({ length: 1_001 }, (_, nr) => [2, nr, `t${nr}`, null]);
        await tracks.create(more.slice(0, 500));
        await tracks.create(more.slice(500, 1_000));
        const all = (await list('albums', { fields: 'tracks(nr)', id: '2' })) as { tracks: unknown[] }[];
        assert.equal(all[0]?.tracks.length, 1_000);
        await tracks.create(more.slice(1_000));
        await assert.rejects(list('albums', { fields: 'tracks(nr)' }), (error) => {
          assert.ok(error instanceof SelectionLimitError);
          assert.deepEqual([error.limit, error.path], ['perRow', 'tracks']);
          return true;
        });
        const some = (await list('albums', {
          fields: 'tracks(nr)',
          id: '2',
          'embed.tracks.limit': '1000',
        })) as {
          tracks: unknown[];
        }[];
        assert.equal(some[0]?.tracks.length, 1_000);
      });
    });
  });
}
