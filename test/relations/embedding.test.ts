import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { declared } from '../support/relations/ruled-door.ts';
import { SHOP_ROWS, shop } from '../support/relations/shop.ts';

const encoded = (query: Readonly<Record<string, string>>) => new URLSearchParams(query).toString();

async function fill(door: RelationDoor): Promise<void> {
  for (const [name, rows] of Object.entries(SHOP_ROWS)) {
    const reply = await door.send('POST', `/${name}`, rows);
    assert.equal(reply.status, 201, reply.text);
  }
}

/** Values that an engine may write in another way than a codec, by column. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  ratio: [
    1e-7,
    1e21,
    5e-324,
    0.1 + 0.2,
    2 / 3,
    1.7976931348623157e308,
    1e20,
    2 ** 53,
    1e15,
    -1.5e-10,
    0,
    null,
  ],
  amount: ['0.05', '-0.05', '-12.30', '999999999999999.99', '0.00', null],
  big: ['9223372036854775807', '-9223372036854775808', '0', null],
  whole: [-9007199254740991, 9007199254740991, 0, null],
  text: ['\u0001\u001f\u007f\b\t', '"\\/', '\u2028\u2029\u{1f98a}é', '', '</script>', null],
  flag: [true, false, null],
  day: ['0001-01-01', '9999-12-31', '1969-12-31', null],
  at: ['0001-01-01T00:00:00.001Z', '9999-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z', null],
  token: ['00000000-0000-4000-8000-00000000000a', null],
  data: [{ b: [1.5, 'x'], a: null }, [], 'text', 1e21, null],
  raw: ['', 'AP+A', null],
};

const TYPED = {
  owners: { columns: { name: { type: 'text', max: 9 } } },
  things: {
    columns: {
      ratio: { type: 'number', nullable: true },
      amount: { type: 'decimal', precision: 17, scale: 2, nullable: true },
      big: { type: 'bigint', nullable: true },
      whole: { type: 'integer', nullable: true },
      text: { type: 'text', max: 99, nullable: true },
      flag: { type: 'boolean', nullable: true },
      day: { type: 'date', nullable: true },
      at: { type: 'timestamp', nullable: true },
      token: { type: 'uuid', nullable: true },
      data: { type: 'json', maxBytes: 99, nullable: true },
      raw: { type: 'bytes', max: 9, nullable: true },
      owner: { type: 'reference', to: 'owners' },
    },
  },
};

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`embedded rows over REST, on ${engine}`, () => {
    const opened = async () => {
      const door = await open(shop);
      await fill(door);
      return door;
    };

    test('values of all types have the bytes that they have in their own list', async () => {
      await using door = await open(declared(TYPED));
      await door.send('POST', '/owners', { name: 'x' });
      const rows = Object.entries(VALUES).flatMap(([name, values]) =>
        values.map((value) => ({ [name]: value, owner_id: 1 })),
      );
      const { status, text } = await door.send('POST', '/things', rows);
      assert.equal(status, 201, text);
      for (const column of Object.keys(VALUES)) {
        const own = (await door.get(`/things?fields=${column}&limit=${rows.length}`)).text;
        for (const limit of ['', `&embed.things.limit=${rows.length}`]) {
          const { text: embedded } = await door.get(`/owners?fields=things(${column})${limit}`);
          assert.equal(embedded, `[{"things":${own}}]`, `${column}${limit}`);
        }
      }
    });

    test('a page, a row and their tags show rows of other relations', async () => {
      await using door = await opened();
      const path = '/albums?fields=title,artist(name),tracks(title)&embed.tracks.limit=1&limit=1';
      const page = await door.get(path);
      assert.deepEqual(page.body, [{ title: 'One', artist: { name: 'Ada' }, tracks: [{ title: 'a' }] }]);
      const { etag = '' } = Object.fromEntries(page.headers);
      assert.equal((await door.get(path, { 'if-none-match': etag })).status, 304);
      const next = await door.get(page.links.next ?? '');
      assert.deepEqual(next.body, [{ title: 'Two', artist: { name: 'Ada' }, tracks: [] }]);
      const one = await door.get(
        '/albums/1?fields=artist(name,albums(title))&embed.artist.albums.sort=-title',
      );
      assert.deepEqual(one.body, { artist: { name: 'Ada', albums: [{ title: 'Two' }, { title: 'One' }] } });
      assert.match(one.headers.get('etag') ?? '', /^"[\w-]{27}"$/);
      assert.equal((await door.get('/albums/99?fields=artist(name)')).status, 404);
      await door.send('PATCH', '/artists/1', { name: 'Adele' });
      const changed = await door.get(path, { 'if-none-match': etag });
      assert.equal(changed.body[0].artist.name, 'Adele');
    });

    test('what cannot be embedded is refused with a remedy', async () => {
      await using door = await open(shop);
      const refused = async (query: Readonly<Record<string, string>>, path = '/albums') => {
        const reply = await door.get(`${path}?${encoded(query)}`);
        assert.equal(reply.status, 400, reply.text);
        const { code, detail, errors } = reply.body;
        return [code, detail, errors?.[0]?.parameter];
      };
      const invalid = async (query: Readonly<Record<string, string>>, detail: string, parameter = 'fields') =>
        assert.deepEqual(await refused(query), ['INVALID_PARAMETER', detail, parameter]);
      await invalid(
        { fields: 'artist' },
        '"fields" takes columns of the row, not "artist"; write artist(*) for all columns of its rows',
      );
      await invalid(
        { fields: 'artists(name)' },
        '"fields" embeds "artists", which albums does not have; did you mean artist?',
      );
      await invalid(
        { fields: 'title(x)' },
        '"fields" embeds "title", which albums does not have, which is a column',
      );
      await invalid({ fields: 'artist(name' }, '"fields" lacks a ")" behind the columns of "artist"');
      await invalid({ fields: 'artist(name))' }, '"fields" has a ")" at 13 that closes nothing');
      await invalid({ fields: 'artist()' }, '"fields" takes columns of the row, not ""');
      await invalid({ fields: 'artist(name),artist(id)' }, '"fields" embeds "artist" twice');
      const unknown =
        '"embed.track.limit" is about rows that "fields" does not embed; did you mean tracks?; write "fields" with "track(...)"';
      await invalid({ fields: 'tracks(nr)', 'embed.track.limit': '1' }, unknown, 'embed.track.limit');
      const one = '"embed.artist.limit" is for arrays, and "artist" is one row';
      await invalid({ fields: 'artist(name)', 'embed.artist.limit': '1' }, one, 'embed.artist.limit');
      const limit = '"embed.tracks.limit" takes a whole number from 1 to 1000';
      await invalid({ fields: 'tracks(nr)', 'embed.tracks.limit': '1001' }, limit, 'embed.tracks.limit');
      const column = '"embed.tracks.titel" names "titel", which tracks does not have; did you mean title?';
      await invalid({ fields: 'tracks(nr)', 'embed.tracks.titel': 'a' }, column, 'embed.tracks.titel');
      const deep = 'artist(albums(artist(albums(artist(name)))))';
      assert.deepEqual(await refused({ fields: deep }), [
        'LIMIT_EXCEEDED',
        '"fields" takes at most 4 levels (levels), and artist.albums.artist.albums.artist is deeper',
        'fields',
      ]);
      const team = (depth: number): string =>
        depth === 0 ? 'id' : `team(${team(depth - 1)}),chief(${team(depth - 1)})`;
      assert.deepEqual(await refused({ fields: team(4) }, '/clerks'), [
        'LIMIT_EXCEEDED',
        '"fields" takes at most 20 embedded relations (embeds)',
        'fields',
      ]);
      const csv = await door.get('/albums?fields=artist(name)', { accept: 'text/csv' });
      assert.equal(csv.status, 400);
      assert.deepEqual(
        (await door.get('/albums?fields=artist(oops)&embed.artist.x=1', { prefer: 'handling=lenient' })).body,
        [],
      );
    });

    test('all rows of a reply are of one moment', async () => {
      await using door = await open(shop);
      let isOver = false;
      const writes = (async () => {
        for (let nth = 1; !isOver; nth++) {
          const made = await door.send('POST', '/albums', { title: `${nth}`, artist: { name: `${nth}` } });
          assert.equal(made.status, 201, made.text);
          const { id, artist_id } = made.body;
          const removed = await door.send('POST', '/_batch', {
            writes: [
              { method: 'DELETE', path: `/albums/${id}` },
              { method: 'DELETE', path: `/artists/${artist_id}` },
            ],
          });
          assert.equal(removed.status, 200, removed.text);
        }
      })();
      const read = async () => {
        for (let left = 250; left > 0; left--) {
          const { body } = await door.get('/albums?fields=title,artist(name)');
          for (const { title, artist } of body) assert.equal(artist?.name, title);
        }
      };
      await Promise.all([read(), read(), read()]).finally(() => {
        isOver = true;
      });
      await writes;
    });

    test('an embedded relation needs its scope', async () => {
      const secret = 'a-secret-of-more-than-thirty-two-characters';
      const scopes = ['albums:read', 'albums:write', 'artists:write', 'entries:read'];
      const api = { required: 'all', scopes, tokens: { clerk: { secret, scopes } } } as const;
      await using door = await open(shop, { api });
      const headers = { authorization: `Bearer ${secret}` };
      const refused = async (path: string) => {
        const { status, body } = await door.get(path, headers);
        return [status, body.code];
      };
      const lacking = [403, 'LACKS_SCOPE'];
      assert.equal((await door.get('/albums?fields=title', headers)).status, 200);
      assert.deepEqual(await refused('/albums?fields=artist(name)'), lacking);
      assert.deepEqual(await refused('/albums/1?fields=tracks(entries(track_nr))'), lacking);
      const made = await door.send('POST', '/albums', { title: 't', artist: { name: 'n' } }, headers);
      // The caller may not read the row that was created with it.
      assert.deepEqual(made.body, { id: 1, title: 't', price: null, artist_id: 1 });
      const more = { title: 'u', artist_id: 1, tracks: [{ nr: 1, title: 'x' }] };
      const lacks = await door.send('POST', '/albums', more, headers);
      assert.deepEqual([lacks.status, lacks.body.code], lacking);
    });

    test('a create takes rows of other relations, in one transaction', async () => {
      await using door = await opened();
      const body = {
        title: 'New',
        artist: { name: 'Dot' },
        tracks: [
          { nr: 1, title: 'x', entries: [{ playlist: { name: 'made' } }] },
          { nr: 2, title: 'y' },
        ],
      };
      const reply = await door.send('POST', '/albums', body);
      assert.equal(reply.status, 201, reply.text);
      assert.equal(reply.headers.get('location'), '/albums/4');
      assert.deepEqual(reply.body, {
        id: 4,
        title: 'New',
        price: null,
        artist_id: 4,
        artist: { id: 4, name: 'Dot' },
        tracks: [
          {
            album_id: 4,
            nr: 1,
            title: 'x',
            seconds: null,
            entries: [{ playlist_id: 4, album_nr: 4, track_nr: 1, playlist: { id: 4, name: 'made' } }],
          },
          { album_id: 4, nr: 2, title: 'y', seconds: null },
        ],
      });
      const read = await door.get('/playlists/4?fields=name,tracks(title,album(title,artist(name)))');
      const tracks = [{ title: 'x', album: { title: 'New', artist: { name: 'Dot' } } }];
      assert.deepEqual(read.body, { name: 'made', tracks });
      const many = await door.send('POST', '/clerks', [
        { name: 'a', team: [{ name: 'b', team: [] }] },
        { name: 'c' },
      ]);
      assert.deepEqual(
        many.body.map(({ name, team }: { name: string; team?: unknown[] }) => [name, team?.length]),
        [
          ['a', 1],
          ['c', undefined],
        ],
      );
    });

    test('a fault of a nested row is pointed to, and nothing is stored', async () => {
      await using door = await opened();
      const faults = async (body: unknown, status: number) => {
        const reply = await door.send('POST', '/albums', body);
        assert.equal(reply.status, status, reply.text);
        return [reply.body.code, ...reply.body.errors.map(({ pointer }: { pointer: string }) => pointer)];
      };
      const artist = { name: 'Eve' };
      assert.deepEqual(
        await faults({ title: 'T', artist, tracks: [{ nr: 1, title: 'x' }, { nr: 'a' }] }, 400),
        ['INVALID_ROW', '#/tracks/1/nr', '#/tracks/1/title'],
      );
      const twice = [
        { nr: 1, title: 'x' },
        { nr: 1, title: 'y' },
      ];
      assert.deepEqual(await faults({ title: 'T', artist, tracks: twice }, 409), [
        'TAKEN',
        '#/tracks/1/album_id',
        '#/tracks/1/nr',
      ]);
      assert.deepEqual(
        await faults(
          [
            { title: 'T', artist },
            { title: 'U', artist_id: 77, tracks: [] },
          ],
          409,
        ),
        ['REFERENCE_MISSING', '#/1/artist_id'],
      );
      assert.deepEqual(await faults({ title: 'T', artist, artist_id: 1 }, 400), [
        'INVALID_ROW',
        '#/artist_id',
      ]);
      assert.deepEqual(await faults({ title: 'T', artist, tracks: { nr: 1 } }, 400), [
        'INVALID_ROW',
        '#/tracks',
      ]);
      assert.deepEqual(await faults({ title: 'T', artist: 3 }, 400), ['INVALID_ROW', '#/artist']);
      assert.deepEqual(await faults({ title: 'T', artist: null }, 400), ['INVALID_ROW', '#/artist_id']);
      const tracks = Array.from({ length: 1_000 }, (_, nr) => ({ nr, title: 't' }));
      assert.deepEqual(await faults({ title: 'T', artist_id: 1, tracks }, 400), [
        'LIMIT_EXCEEDED',
        '#/tracks/999',
      ]);
      const deep = {
        title: 'T',
        artist: { name: 'F', albums: [{ title: 'V', artist: { name: 'G', albums: [] } }] },
      };
      const deeper = {
        ...deep,
        artist: {
          name: 'F',
          albums: [{ title: 'V', tracks: [{ nr: 1, title: 't', entries: [{ playlist: { name: 'p' } }] }] }],
        },
      };
      assert.deepEqual((await faults(deeper, 400)).slice(0, 2), [
        'LIMIT_EXCEEDED',
        '#/artist/albums/0/tracks/0/entries/0',
      ]);
      const artists = await door.get('/artists', { prefer: 'count=exact' });
      assert.equal(artists.headers.get('x-total-count'), '3');
      const stored = await door.send('POST', '/albums', {
        title: 'T',
        artist_id: 1,
        tracks: tracks.slice(1),
      });
      assert.equal(stored.body.tracks.length, 999);
    });

    test('a repeated create of nested rows with a key creates nothing', async () => {
      await using door = await opened();
      const body = { title: 'Once', artist: { name: 'Key' }, tracks: [{ nr: 1, title: 'k' }] };
      const headers = { 'idempotency-key': 'one' };
      const first = await door.send('POST', '/albums', body, headers);
      const again = await door.send('POST', '/albums', body, headers);
      assert.deepEqual([first.status, again.status], [201, 201]);
      assert.equal(again.text, first.text);
      assert.equal((await door.get('/artists?name=Key')).body.length, 1);
    });
  });
}
