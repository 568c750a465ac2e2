import type { RequestContext } from '@portico/transport';
import type { Relation } from '../../relations/relation.ts';
import type { RowStore } from '../../relations/rows/rows.ts';
import type { RelationView, RowRules, RowView } from '../../relations/rules/views.ts';

/** Where the rows of a door come from. */
export interface RowSource {
  /** All rows of a relation, also of users. */
  storeOf(relation: string): RowStore;
  /** What callers may do with them; undefined if no relation has rules. */
  readonly rules: RowRules | undefined;
}

/** The rows of all relations as the caller of an operation may read and write them. */
export interface CallerRows {
  /** What the caller may do; undefined without rules. */
  readonly view: RowView | undefined;
  /** The name of the caller, for columns with the default `caller`. */
  readonly caller: string | undefined;
  of(relation: Pick<Relation, 'name'>): RowStore;
  viewOf(relation: Relation): RelationView | undefined;
}

/** The rows for each request, which is what the run of an operation was given. */
export type RowsFor = (request: unknown) => CallerRows;

/** Without a request, rows are those of a caller without credentials. */
export function rowsFor({ storeOf, rules }: RowSource): RowsFor {
  return (request) => {
    const { caller } = (request ?? {}) as Partial<Pick<RequestContext, 'caller'>>;
    const view = rules?.viewOf(caller);
    return {
      view,
      caller: caller?.name,
      of: ({ name }) => storeOf(name).as(view, caller),
      viewOf: (relation) => view?.of(relation),
    };
  };
}
