import {
  GraphQLBoolean,
  type GraphQLInputFieldConfigMap,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  GraphQLList,
  GraphQLNonNull,
} from 'graphql';
import { isAssigned } from '../../relations/given-values.ts';
import { type Column, type ColumnRules, isComputed, type Relation, USERS } from '../../relations/relation.ts';

/** The types from which those of new rows and of changes are made. */
export interface InputSources {
  /** The type of a column's values. */
  leaf(relation: Relation, column: Column): GraphQLLeafType;
  /** The type of new rows of a relation. */
  newRow(relation: string): GraphQLInputObjectType;
}

/** The columns of a new row, those of references by their rows as well, and the rows that refer to it. */
export function createdFields(relation: Relation, types: InputSources): GraphQLInputFieldConfigMap {
  const own = relation.columns.filter(({ rules }) => isServiceOwn(rules)).map(({ name }) => name);
  // Users are not created with other rows.
  const references = relation.references.filter(
    ({ to, columns }) => to !== USERS && !columns.some((each) => own.includes(each)),
  );
  const inverses = relation.inverses.filter((each) => each.relation !== USERS);
  return inputOf([
    ...columnsOf(relation, types, new Set(references.flatMap(({ columns }) => columns))),
    ...references.map(({ name, to, columns }): Field => {
      const description = `A new row of ${to}, in place of ${columns.join(' and ')}.`;
      return [name, { type: types.newRow(to), description }];
    }),
    ...inverses.map(({ name, relation: other }): Field => {
      const type = new GraphQLList(new GraphQLNonNull(types.newRow(other)));
      return [name, { type, description: `New rows of ${other} that refer to this one.` }];
    }),
  ]);
}

/** The columns of a row that may be there already. */
export function upsertedFields(relation: Relation, types: InputSources): GraphQLInputFieldConfigMap {
  return inputOf(columnsOf(relation, types, new Set()));
}

/** The columns that a change may have. */
export function patchedFields(relation: Relation, types: InputSources): GraphQLInputFieldConfigMap {
  const changed = relation.columns.filter(
    (column) =>
      !relation.key.includes(column.name) &&
      !isComputed(column) &&
      !isServiceOwn(column.rules) &&
      column.rules?.fixed !== 'immutable',
  );
  return inputOf(changed.map((column) => [column.name, { type: types.leaf(relation, column) }]));
}

type Field = readonly [name: string, { readonly type: GraphQLInputType; readonly description?: string }];

/** The columns of a new row that clients give; `optional` are some that a row needs nonetheless. */
function columnsOf(relation: Relation, types: InputSources, optional: ReadonlySet<string>): readonly Field[] {
  const given = relation.columns.filter((column) => !isAssigned(column) && !isServiceOwn(column.rules));
  return given.map((column) => {
    const { name, nullable, default: standard, type: kind } = column;
    const type = types.leaf(relation, column);
    const isOptional = nullable || standard !== undefined || kind.kind === 'serial' || optional.has(name);
    return [name, { type: isOptional ? type : new GraphQLNonNull(type) }];
  });
}

/** Whether no client writes a column. */
function isServiceOwn(rules: ColumnRules | undefined): boolean {
  return rules?.set !== undefined || rules?.fixed === 'readonly';
}

function inputOf(fields: readonly Field[]): GraphQLInputFieldConfigMap {
  return Object.fromEntries(fields.length === 0 ? [NOTHING] : fields);
}

/** An input needs a field; this one takes nothing but null. */
const NOTHING: Field = ['_', { type: GraphQLBoolean, description: 'Leave it out: there are no columns.' }];
