import { codecOf } from '../codecs.ts';
import { changeName, type RelationEvent } from '../events.ts';
import type { Relation } from '../relation.ts';
import type { RowStore, RowValues } from '../rows/rows.ts';
import type { RowView } from './views.ts';

type Members = Readonly<Record<string, unknown>>;

/** An event as a caller gets it, and the row by which filters judge it. */
export interface SeenEvent {
  readonly event: RelationEvent;
  readonly row: Members;
}

/**
 * The events of a relation that a caller may see, each with the columns that it may read. The caller's condition judges the
 * row as the event has it, and the rows to which that refers as they are now. A row that it could read before a change and
 * cannot read any more is deleted, with its key alone.
 */
export async function seenEvents(
  view: RowView,
  rows: RowStore,
  events: readonly RelationEvent[],
): Promise<readonly SeenEvent[]> {
  const { relation } = rows;
  const { readable } = view.of(relation);
  const names = readable && new Set(readable.map((i) => relation.columns[i]?.name));
  const parsed = events.map((event) => {
    const { row } = JSON.parse(event.json) as { readonly row: Members };
    return {
      event,
      row,
      before: event.before === undefined ? undefined : (JSON.parse(event.before) as Members),
    };
  });
  const all = parsed.flatMap(({ row, before }) => (before === undefined ? [row] : [row, before]));
  const shown = await rows.as(view).shows(all.map((row) => valuesOf(relation, row)));
  let next = 0;
  return parsed.flatMap(({ event, row, before }): readonly SeenEvent[] => {
    const isSeen = shown[next++] === true;
    const wasSeen = before !== undefined && shown[next++] === true;
    const { position, key, type } = event;
    if (isSeen) {
      if (names === undefined) return [{ event, row }];
      const visible = Object.fromEntries(Object.entries(row).filter(([name]) => names.has(name)));
      const json = JSON.stringify({ position, relation: relation.name, type, key, row: visible });
      return [{ event: { ...event, json }, row }];
    }
    if (!wasSeen || before === undefined) return [];
    const json = JSON.stringify({ position, relation: relation.name, type: 'deleted', key });
    const name = changeName(relation, 'deleted');
    return [{ event: { ...event, type: 'deleted', name, json }, row: before }];
  });
}

/** The values of the row of an event; null for one that its column no longer allows. */
function valuesOf({ columns }: Relation, row: Members): RowValues {
  return columns.map(({ name, type }) => {
    const given = row[name] ?? null;
    const parsed = given === null ? { value: null } : codecOf(type).parse(given);
    return 'value' in parsed ? parsed.value : null;
  });
}
