import assert from 'node:assert/strict';
import type { RelationsData } from '../../../src/config/schema/declaration.ts';
import { readRelations } from '../../../src/config/schema/relations.ts';
import type { Relation } from '../../../src/relations/relation.ts';

/** A shop of records: a self-reference, references to keys of two columns, and a many-to-many. */
const SHOP: RelationsData = {
  artists: { columns: { name: { type: 'text', max: 60 } }, indexes: [['name']] },
  albums: {
    columns: {
      title: { type: 'text', max: 60 },
      price: { type: 'decimal', precision: 8, scale: 2, nullable: true },
      artist: { type: 'reference', to: 'artists' },
    },
  },
  tracks: {
    key: ['album_id', 'nr'],
    columns: {
      album: { type: 'reference', to: 'albums', onDelete: 'cascade' },
      nr: { type: 'integer' },
      title: { type: 'text', max: 60 },
      seconds: { type: 'number', nullable: true },
    },
  },
  playlists: { columns: { name: { type: 'text', max: 60 } }, many: { tracks: { through: 'entries' } } },
  entries: {
    key: ['playlist_id', 'album_nr', 'track_nr'],
    columns: {
      playlist: { type: 'reference', to: 'playlists', onDelete: 'cascade' },
      track: { type: 'reference', to: 'tracks', columns: ['album_nr', 'track_nr'], onDelete: 'cascade' },
      album_nr: { type: 'integer' },
      track_nr: { type: 'integer' },
    },
  },
  clerks: {
    columns: {
      name: { type: 'text', max: 60 },
      chief: { type: 'reference', to: 'clerks', nullable: true, inverse: 'team' },
    },
  },
};

/** A declaration as it is read. */
export function relationsOf(data: RelationsData): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

export const shop: readonly Relation[] = relationsOf(SHOP);

/** Rows of the shop, by relation. */
export const SHOP_ROWS: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  artists: [{ name: 'Ada' }, { name: 'Ben' }, { name: 'Cleo' }],
  albums: [
    { title: 'One', price: '9.90', artist_id: 1 },
    { title: 'Two', artist_id: 1 },
    { title: 'Three "3"', price: '12.00', artist_id: 2 },
  ],
  tracks: [
    { album_id: 1, nr: 1, title: 'a', seconds: 0.1 },
    { album_id: 1, nr: 2, title: 'b' },
    { album_id: 1, nr: 3, title: 'c', seconds: 3 },
    { album_id: 3, nr: 1, title: 'é', seconds: 1e21 },
  ],
  playlists: [{ name: 'empty' }, { name: 'mixed' }, { name: 'short' }],
  entries: [
    { playlist_id: 2, album_nr: 3, track_nr: 1 },
    { playlist_id: 2, album_nr: 1, track_nr: 2 },
    { playlist_id: 3, album_nr: 1, track_nr: 2 },
  ],
  clerks: [
    { name: 'top' },
    { name: 'left', chief_id: 1 },
    { name: 'right', chief_id: 1 },
    { name: 'leaf', chief_id: 2 },
  ],
};
