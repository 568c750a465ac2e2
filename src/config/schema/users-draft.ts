import { isRecord } from '../../core/json.ts';
import { type Relation, type TextForm, USERS } from '../../relations/relation.ts';
import { MAX_EMAIL, MAX_NAME } from '../../relations/user.ts';
import { type Named, namedOf, pathTo } from './fields.ts';
import { type Draft, readDraft } from './relation-draft.ts';

/** The columns that users have in all installations. */
const BASE = {
  id: { type: 'serial' },
  // These count UTF-16 code units, of which a character has one or two.
  name: { type: 'text', max: MAX_NAME, fold: true },
  email: { type: 'text', max: MAX_EMAIL, fold: true },
} as const;
/** The columns of their table. */
const TAKEN = [...Object.keys(BASE), 'version'];
const OPTIONS = ['columns', 'indexes'];

/** Reads the relation of users, of which a declaration may only add columns and indexes. */
export function readUsersDraft(
  { value = { columns: {} }, path }: Named,
  keys: ReadonlyMap<string, readonly string[]>,
  problems: string[],
): Draft {
  const given = isRecord(value) ? value : {};
  if (!isRecord(value)) problems.push(`${path} must be an object with columns`);
  for (const option of Object.keys(given)) {
    if (!OPTIONS.includes(option))
      problems.push(`${pathTo(path, option)} is not possible for users, which take columns and indexes`);
  }
  const columns = namedOf({ value: given.columns, path: `${path}.columns` }, 'columns by name', problems);
  for (const { name, value: column, path: at } of columns) {
    if (TAKEN.includes(name.toLowerCase())) problems.push(`${at} is a column of users already; rename it`);
    if (isRecord(column)) checkColumn(column, at, problems);
  }
  const added = Object.fromEntries(
    columns.filter(({ name }) => !(name in BASE)).map((column) => [column.name, column.value]),
  );
  const whole = {
    columns: { ...BASE, ...added },
    ...(given.indexes === undefined ? {} : { indexes: given.indexes }),
    changes: false,
  };
  return readDraft({ name: USERS, value: whole, path }, keys, problems);
}

/** The relation of users with the forms of their texts. */
export function withForms<R extends Pick<Relation, 'columns'>>(users: R): R {
  const columns = users.columns.map((column) => {
    const form = FORMS.get(column.name);
    return form === undefined || column.type.kind !== 'text'
      ? column
      : { ...column, type: { ...column.type, form } };
  });
  return { ...users, columns };
}

const FORMS: ReadonlyMap<string, TextForm> = new Map([
  ['name', 'filled'],
  ['email', 'address'],
]);

/** Users are also created by statements that do not know the column. */
function checkColumn(column: Readonly<Record<string, unknown>>, path: string, problems: string[]): void {
  const { nullable, default: standard, unique } = column;
  for (const option of ['read', 'write', 'readonly', 'immutable', 'set']) {
    if (column[option] !== undefined) problems.push(`${path}.${option} is not possible for columns of users`);
  }
  if (nullable !== true && standard === undefined)
    problems.push(`${path} must be nullable or have a default, because users exist without it`);
  if (unique === true && standard !== undefined)
    problems.push(`${path}.unique goes with nullable, not with a default, which several users would have`);
}

/** Checks the defaults of the columns of users, which the engine has to know. */
export function checkUsersDefaults(
  { fields }: Draft,
  { columns }: Pick<Relation, 'columns'>,
  problems: string[],
): void {
  for (const { name, default: standard } of columns) {
    if (standard !== undefined && standard.kind !== 'value')
      problems.push(
        `${fields.get(name)?.path}.default must be a value, because users are also created without the column`,
      );
  }
}
