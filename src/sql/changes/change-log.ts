import {
  type ChangeType,
  EventFeed,
  type EventLog,
  type EventPosition,
  type RelationEvent,
  type RelationFeed,
} from '../../relations/events.ts';
import type { Relation } from '../../relations/relation.ts';
import { relationEvent } from '../../relations/rows/changes.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { type EventLimits, EventRetention } from '../event-retention.ts';
import { EVENT_TABLES } from './change-triggers.ts';

/** The open changes of relations: their feed, and what removes old ones. */
export interface OpenChanges extends AsyncDisposable {
  readonly feed: RelationFeed;
}

/** Opens the changes of the relations that record them; undefined if none does. */
export function openChanges(
  relations: readonly Relation[],
  open: (relations: Relations) => EventLog<RelationEvent>,
  { pause, limits }: { readonly pause: number; readonly limits: EventLimits | undefined },
): OpenChanges | undefined {
  if (!relations.some(({ changes }) => changes)) return undefined;
  const log = open(new Map(relations.map((relation) => [relation.name, relation])));
  const feed = new EventFeed(log, pause);
  const retention = limits && new EventRetention(log, limits);
  return {
    feed,
    async [Symbol.asyncDispose]() {
      feed[Symbol.dispose]();
      await retention?.[Symbol.asyncDispose]();
    },
  };
}

/** The changes of relations as the event log of an SQLite file reads them. */
export function sqliteChanges(relations: Relations) {
  return {
    tables: { ...EVENT_TABLES, position: 'position' },
    columns: 'relation, type, "row", bytes',
    eventOf: ({
      position,
      at,
      relation,
      type,
      row,
      bytes,
    }: EventPosition & Readonly<Record<string, unknown>>) =>
      relationEvent(relations, {
        position,
        at,
        relation: String(relation),
        type: type as ChangeType,
        row: String(row),
        hex: bytes === null ? [] : (JSON.parse(String(bytes)) as string[]),
      }),
  };
}

/** The changes of relations as the event log of a PostgreSQL database reads them. */
export function postgresChanges(relations: Relations) {
  return {
    ...EVENT_TABLES,
    stored: 'relation, type, at, "row"',
    columns: 'relation, type, "row"',
    size: 'octet_length("row")',
    eventOf: (position: EventPosition, [relation, type, row]: readonly unknown[]) =>
      relationEvent(relations, {
        ...position,
        relation: String(relation),
        type: type as ChangeType,
        row: String(row),
        hex: [],
      }),
  };
}
