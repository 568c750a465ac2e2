import { readFile } from 'node:fs/promises';
import { scopesReader } from '../access/jwt.ts';
import { isRecord } from '../core/json.ts';
import { didYouMean, quote } from '../core/text.ts';
import { codecOf } from '../relations/codecs.ts';
import { hasRules, OPERATIONS, type Operation, type Relation } from '../relations/relation.ts';
import type { Condition, Relations } from '../relations/rows/conditions.ts';
import { isAll, isNone } from '../relations/rules/rule-trees.ts';
import { type RelationView, RowRules, type RuleCaller } from '../relations/rules/views.ts';
import { databaseAt } from '../sql/database.ts';
import { POSTGRES_ROWS, SQLITE_ROWS } from '../sql/dialects/row-dialects.ts';
import { conditionAt } from '../sql/relations/conditions-sql.ts';
import { type CommandArguments, readArguments } from './arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from './command.ts';
import { print, printJson } from './terminal.ts';

/** `portico rules explain books read --as claims.json`. Resolves to the exit code. */
export const explainRules: Command = {
  usage: {
    topic: 'rules explain',
    words: '<relation> <operation> [options]',
    maxWords: 2,
    about:
      'Prints which rows of a relation a caller may read, create, update or delete: the condition and its SQL, with the ' +
      'claims of the caller in their places. Does not open the database.',
    options: {
      '--as <file>':
        'File with the claims of the caller as a JSON object, as its token has them. Without it the caller has none.',
      ...JSON_OPTION,
    },
    examples: ['portico rules explain books read --as claims.json'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(explainRules.usage, argv, io);
  const { settings, relations } = await args.configuration();
  const [name = '', given = ''] = args.words;
  const relation = relations.find((each) => each.name === name);
  const names = relations.map((each) => each.name);
  if (relation === undefined)
    throw args.misuse(`There is no relation ${quote(name)}${didYouMean(name, names)}`);
  const operation = OPERATIONS.find((each) => each === given);
  if (operation === undefined)
    throw args.misuse(`The operation is one of ${OPERATIONS.join(', ')}, not ${quote(given)}`);
  if (!relations.some(hasRules)) {
    await print(io, 'No relation has rules: API_REQUIRED and scopes say who may read and write.\n');
    return 0;
  }
  const caller = await callerOf(args, settings['api.jwt.scopesClaim']);
  const byName: Relations = new Map(relations.map((each) => [each.name, each]));
  const required = settings['api.required'];
  const rules = RowRules.of(byName, (known, need, of) => {
    if (required === 'none' || (required === 'write' && need === 'read')) return true;
    return known?.scopes.has(`${of}:${need}`) === true || known?.scopes.has(`*:${need}`) === true;
  });
  const view = rules?.viewOf(caller).of(relation);
  if (view === undefined) throw new Error('A relation with rules has a view');
  const dialect = databaseAt(settings['database.url']).engine === 'sqlite' ? SQLITE_ROWS : POSTGRES_ROWS;
  const { text, values } = conditionAt(view[operation], 'r', { ...dialect, timely: () => '' })(1);
  const found = {
    relation: name,
    operation,
    condition: treeOf(relation, view[operation]),
    sql: text,
    values: values.map((value) => (typeof value === 'bigint' ? String(value) : value)),
    ...columnsOf(view, operation),
  };
  await (args.has('--json') ? printJson(io, found) : print(io, textOf(view[operation], found)));
  return 0;
}

/** The caller whose claims a file has; undefined without one. */
async function callerOf(args: CommandArguments, scopesClaim: string): Promise<RuleCaller | undefined> {
  const file = args.value('--as');
  if (file === undefined) return undefined;
  let claims: unknown;
  try {
    claims = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw args.misuse(`${file} cannot be read as JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (!isRecord(claims)) throw args.misuse(`${file} must have a JSON object of claims`);
  return { kind: 'jwt', name: String(claims.sub ?? ''), scopes: scopesReader(scopesClaim)(claims), claims };
}

/** The columns that the caller may not read or write, by name. */
function columnsOf({ relation, readable, unwritable }: RelationView, operation: Operation) {
  const { columns } = relation;
  if (operation === 'read') {
    const hidden = columns.filter((_, i) => readable?.includes(i) === false).map((column) => column.name);
    return { hidden };
  }
  if (operation === 'delete') return {};
  const isNew = operation === 'create';
  const fixed = columns.filter((column) => unwritable(column, isNew) !== undefined);
  return { unwritable: fixed.map((column) => column.name) };
}

interface Explained {
  readonly relation: string;
  readonly operation: Operation;
  readonly condition: unknown;
  readonly sql: string;
  readonly values: readonly unknown[];
  readonly hidden?: readonly string[];
  readonly unwritable?: readonly string[];
}

function textOf(condition: Condition, found: Explained): string {
  const which = isAll(condition)
    ? 'every row'
    : isNone(condition)
      ? 'no row'
      : JSON.stringify(found.condition);
  const columns = [
    ...(found.hidden?.length ? [`Hidden columns: ${found.hidden.join(', ')}`] : []),
    ...(found.unwritable?.length ? [`Columns that it may not write: ${found.unwritable.join(', ')}`] : []),
  ];
  const lines = [
    `The caller may ${found.operation} ${isAll(condition) || isNone(condition) ? which : `rows of ${found.relation} that meet`}`,
    ...(isAll(condition) || isNone(condition) ? [] : [which]),
    `WHERE ${found.sql}`,
    ...(found.values.length > 0 ? [`Values: ${JSON.stringify(found.values)}`] : []),
    ...columns,
  ];
  return `${lines.join('\n')}\n`;
}

/** A condition as a tree of JSON. */
function treeOf(relation: Relation, condition: Condition): unknown {
  switch (condition.is) {
    case 'and':
    case 'or':
      return { [condition.is]: condition.all.map((each) => treeOf(relation, each)) };
    case 'not':
      return { not: treeOf(relation, condition.condition) };
    case 'some':
    case 'none':
    case 'every': {
      const inside = treeOf(condition.relation, condition.condition);
      const here = String(condition.on.map(([column]) => column));
      const reference = relation.references.find(
        ({ to, columns }) => to === condition.relation.name && String(columns) === here,
      );
      if (condition.isReference && reference !== undefined)
        return { [reference.name]: condition.is === 'some' ? inside : { [condition.is]: inside } };
      const there = String(condition.on.map(([, column]) => column));
      const inverse = relation.inverses.find(({ relation: other, reference: name }) => {
        const back = condition.relation.references.find((each) => each.name === name);
        return other === condition.relation.name && String(back?.columns) === there;
      });
      return { [inverse?.name ?? condition.relation.name]: { [condition.is]: inside } };
    }
    case 'null':
      return { [condition.column.name]: condition.isNull ? null : { isNull: false } };
    case 'prefix':
    case 'contains':
      return { [condition.column.name]: { [condition.is]: condition.text } };
    default: {
      const { format } = codecOf(condition.column.type);
      const value =
        condition.is === 'in'
          ? condition.values.map((each) => JSON.parse(format(each)) as unknown)
          : (JSON.parse(format(condition.value)) as unknown);
      return { [condition.column.name]: condition.is === 'eq' ? value : { [condition.is]: value } };
    }
  }
}
