import { OPERATIONS, type Operation } from '../relation.ts';
import { RowFormat, type RowStore } from '../rows/rows.ts';
import { type RowRules, type RuleCaller, withRead } from './views.ts';

/** Which of these a caller may do with a stored row. */
export interface RowVerdicts {
  readonly may: readonly Operation[];
  /** The columns that it may not read. */
  readonly hidden: readonly string[];
}

/** What rules let a caller do with the row that has a key, as in paths; undefined if there is none. */
export async function verdictsOn(
  store: RowStore,
  keyText: string,
  rules: RowRules,
  caller: RuleCaller | undefined,
): Promise<RowVerdicts | undefined> {
  const { relation } = store;
  const key = new RowFormat(relation).readPath(keyText);
  if (key === undefined || (await store.read(key)) === undefined) return undefined;
  const view = rules.viewOf(caller);
  const own = view.of(relation);
  const may: Operation[] = [];
  for (const operation of OPERATIONS) {
    // A new row is another one.
    if (operation === 'create') continue;
    if ((await store.as(withRead(view, relation, own[operation])).read(key)) !== undefined)
      may.push(operation);
  }
  const hidden = relation.columns.filter((_, i) => own.readable?.includes(i) === false);
  // A row that is not read is not found by writes.
  return { may: may.includes('read') ? may : [], hidden: hidden.map(({ name }) => name) };
}
