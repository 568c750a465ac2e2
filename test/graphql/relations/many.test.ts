import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SHOP_ROWS, shop } from '../../support/relations/shop.ts';
import { graphqlRelationDoors, type RelationsDoor } from '../support/relations-door.ts';

async function filled(door: RelationsDoor): Promise<RelationsDoor> {
  for (const [name, rows] of Object.entries(SHOP_ROWS)) {
    const type = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const one = name === 'entries' ? 'EntryCreate' : `${type.slice(0, -1)}Create`;
    await door.data({
      query: `mutation ($data: [${one}!]!) { create${type}(data: $data) { __typename } }`,
      variables: { data: rows },
    });
  }
  return door;
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`many-to-manies in GraphQL on ${engine}`, () => {
    test('choose rows by the rows behind them', async () => {
      await using door = await filled(await open(shop));
      const names = async (tracks: string) => {
        const query = `{ playlists(where: { tracks: ${tracks} }, orderBy: { name: ASC }) { name } }`;
        return (await door.data(query)).playlists.map(({ name }: { readonly name: string }) => name);
      };
      assert.deepEqual(await names('{ some: { title: { eq: "b" } } }'), ['mixed', 'short']);
      assert.deepEqual(await names('{ some: { album: { artist: { name: { eq: "Ben" } } } } }'), ['mixed']);
      assert.deepEqual(await names('{ none: { title: { eq: "b" } } }'), ['empty']);
      assert.deepEqual(await names('{ every: { title: { in: ["b"] } } }'), ['empty', 'short']);
      assert.deepEqual(await names('{ some: {}, every: { title: { eq: "b" } } }'), ['short']);
      // Conditions under one `some` hold for one and the same row.
      assert.deepEqual(await names('{ some: { title: { eq: "b" }, album: { id: { eq: "3" } } } }'), []);
    });

    test('have conditions, orders and limits of their own, and go on to other rows', async () => {
      await using door = await filled(await open(shop));
      const { body } = await door.ask({
        query: `query ($where: TrackWhere) {
          playlists(orderBy: { name: DESC }) {
            name
            all: tracks(orderBy: { title: DESC }) { title album { title } }
            tracks(where: $where, limit: 1) { nr }
          }
          playlistsAggregate(where: { tracks: { some: $where } }) { count }
        }`,
        variables: { where: { album: { artist: { name: { eq: 'Ada' } } } } },
      });
      const [b, e] = [
        { title: 'b', album: { title: 'One' } },
        { title: 'é', album: { title: 'Three "3"' } },
      ];
      assert.deepEqual(body, {
        data: {
          playlists: [
            { name: 'short', all: [b], tracks: [{ nr: 2 }] },
            { name: 'mixed', all: [e, b], tracks: [{ nr: 2 }] },
            { name: 'empty', all: [], tracks: [] },
          ],
          playlistsAggregate: [{ count: 2 }],
        },
      });
    });

    test('are not conditions of subscriptions, nor rows of a create', async () => {
      await using door = await open(shop);
      const events = await door.ask(
        'subscription { playlistCreated(where: { tracks: { some: {} } }) { id } }',
        {
          accept: 'text/event-stream',
        },
      );
      assert.match(events.text, /takes conditions on columns of playlists only/);
      const created = await door.error(
        'mutation { createPlaylist(data: { name: "x", tracks: [{ title: "y" }] }) { id } }',
      );
      assert.match(created.message, /"PlaylistCreate" not to include unknown field "tracks"/);
    });
  });
}
