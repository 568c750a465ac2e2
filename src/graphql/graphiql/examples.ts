import type { GraphQLSchema } from 'graphql';
import { type Column, type Relation, USERS } from '../../relations/relation.ts';

/** A tab of GraphiQL. */
interface Tab {
  readonly query: string;
  readonly variables?: string;
}

/** What GraphiQL shows on a first visit: tabs, and the contents of a tab that the user opens. */
export interface Examples {
  readonly tabs: readonly Tab[];
  readonly newTab: string;
}

/** The examples that fit a schema: `extensions.examples`; undefined for those of users. */
export function examplesOf(schema: GraphQLSchema): Examples | undefined {
  return schema.extensions.examples as Examples | undefined;
}

/** Columns of an example, and how deep a new row has rows within it. */
const SHOWN = 4;
const DEPTH = 3;

/** Examples of the first relation of a declaration, as one with relations has. */
export function relationExamples(relations: ReadonlyMap<string, Relation>): Examples {
  const served = [...relations.values()].filter(({ name }) => name !== USERS);
  const [first] = served;
  if (first === undefined) throw new Error('There are no relations');
  const followed = served.find(({ changes }) => changes);
  return {
    tabs: [
      { query: listOf(first) },
      { query: createOf(first), variables: JSON.stringify({ data: newRow(relations, first, 1) }, null, 2) },
      ...(followed === undefined ? [] : [{ query: subscriptionOf(followed) }]),
    ],
    newTab: `query {\n  ${first.name} {\n    ${fieldsOf(first).at(0)}\n  }\n}\n`,
  };
}

function listOf(relation: Relation): string {
  const [reference] = relation.references.filter(({ to }) => to !== USERS);
  const more = reference === undefined ? [] : [`${reference.name} {`, '  __typename', '}'];
  return `# Ctrl+Enter runs the query,
# Ctrl+Space completes it.

query ${capitalized(relation.name)} {
  ${relation.name}(limit: 10) {
    ${[...fieldsOf(relation), ...more].join('\n    ')}
  }
}
`;
}

function createOf({ one, ...relation }: Relation): string {
  const type = capitalized(one);
  return `mutation Create${type}($data: ${type}Create!) {
  create${type}(data: $data) {
    ${fieldsOf({ one, ...relation }).join('\n    ')}
  }
}
`;
}

function subscriptionOf({ one, ...relation }: Relation): string {
  return `# Shows each row of ${relation.name} that is created from now on,
# here or in another window.

subscription ${capitalized(one)}Created {
  ${one}Created {
    ${fieldsOf({ one, ...relation }).join('\n    ')}
  }
}
`;
}

/** The first columns that every caller may read. */
function fieldsOf({ columns }: Relation): readonly string[] {
  const shown = columns.filter(({ rules }) => rules?.read === undefined).slice(0, SHOWN);
  return shown.length === 0 ? ['__typename'] : shown.map(({ name }) => name);
}

/** A new row with the columns that it needs, and with new rows of the references that it needs. */
function newRow(
  relations: ReadonlyMap<string, Relation>,
  { columns, references }: Relation,
  level: number,
): Readonly<Record<string, unknown>> {
  const isNeeded = ({ nullable, default: standard, type, rules }: Column) =>
    !nullable && standard === undefined && type.kind !== 'serial' && rules?.set === undefined;
  const needed = columns.filter(isNeeded);
  const nested = references.flatMap(({ name, to, columns: own }) => {
    const target = relations.get(to);
    const isNested = target !== undefined && to !== USERS && level <= DEPTH;
    return isNested && own.every((column) => needed.some((each) => each.name === column))
      ? [{ name, own, row: newRow(relations, target, level + 1) }]
      : [];
  });
  const within = new Set(nested.flatMap(({ own }) => own));
  return Object.fromEntries([
    ...needed
      .filter(({ name }) => !within.has(name))
      .map((column) => [column.name, exampleOf(column)] as const),
    ...nested.map(({ name, row }) => [name, row] as const),
  ]);
}

/** A value that a column takes. */
function exampleOf({ type }: Column): unknown {
  switch (type.kind) {
    case 'serial':
      return 1;
    case 'integer':
    case 'number':
      return Math.min(Math.max(1, type.min ?? 1), type.max ?? 1);
    case 'bigint':
      return String(type.min ?? type.max ?? 1);
    case 'decimal':
      return type.min ?? type.max ?? '0';
    case 'boolean':
      return true;
    case 'text':
      return 'Ada Lovelace'.slice(0, type.max);
    case 'date':
      return '2026-01-31';
    case 'timestamp':
      return '2026-01-31T12:00:00Z';
    case 'uuid':
      return '0b0e1f9c-5b0c-4d6e-9a53-5f0c3a1d2e4f';
    case 'enum':
      return type.values[0];
    case 'json':
      return {};
    case 'bytes':
      return type.max === 0 ? '' : 'QQ==';
  }
}

function capitalized(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}
