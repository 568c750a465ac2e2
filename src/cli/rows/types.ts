import { readFile, writeFile } from 'node:fs/promises';
import { isAssigned } from '../../relations/given-values.ts';
import { type Column, type Reference, type Relation, USERS } from '../../relations/relation.ts';
import { readArguments } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { note, print } from '../terminal.ts';

const FILE = 'portico.d.ts';

/** `portico types`. Resolves to the exit code: 0, or 1 if a checked file differs. */
export const types: Command = {
  usage: {
    topic: 'types',
    words: '[options]',
    about:
      'Writes the types of the declared relations for TypeScript: of each its rows, the bodies that create and change ' +
      'them, its conditions, and the interface Relations for portico/client. Does not open the database.',
    options: {
      '--out <file>': `File to write. [default: ${FILE}]`,
      '--check': 'Writes nothing, and exits with 1 if the file differs from the declaration.',
    },
    examples: ['portico types', 'portico types --out src/portico.d.ts --check'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(types.usage, argv, io);
  const { relations, settings } = await args.configuration();
  const servesUsers = settings['rest.users'] === 'standard';
  const served = relations.map(({ name }) => name).filter((name) => servesUsers || name !== USERS);
  if (served.length === 0) throw args.misuse('The configuration declares no relations');
  const file = args.value('--out') ?? FILE;
  const text = new Declarations(relations, served, (problem) => args.misuse(problem)).text();
  const before = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw args.misuse(`${file} cannot be read: ${error.message}`);
  });
  // Git may write the file with other ends of lines.
  if (before?.replaceAll('\r\n', '\n') === text) {
    await print(io, `${file} is up to date.\n`);
    return 0;
  }
  if (args.has('--check')) {
    const how = before === undefined ? 'is not there' : 'differs from the declaration';
    note(io, `${file} ${how}; run "portico types${file === FILE ? '' : ` --out ${file}`}".`);
    return 1;
  }
  await writeFile(file, text).catch((error: Error) => {
    throw args.misuse(`${file} cannot be written: ${error.message}`);
  });
  await print(io, `${file} written.\n`);
  return 0;
}

const HEAD = `// Written by "portico types" from the declaration of the relations; do not edit.
export {};
`;

/** The types that those of relations use, each by its name. */
const HELPERS: readonly (readonly [name: string, text: string])[] = [
  [
    'JsonValue',
    'type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };\n',
  ],
  [
    'ColumnTest',
    `type ColumnTest<T> =
  | T
  | null
  | {
      readonly eq?: T | null;
      readonly ne?: T | null;
      readonly in?: readonly T[];
      readonly lt?: T;
      readonly lte?: T;
      readonly gt?: T;
      readonly gte?: T;
      readonly isNull?: boolean;
    };
`,
  ],
  [
    'TextTest',
    'type TextTest = ColumnTest<string> | { readonly prefix?: string; readonly contains?: string };\n',
  ],
  ['RowsTest', 'type RowsTest<W> = { readonly some?: W; readonly none?: W; readonly every?: W };\n'],
  [
    'Without',
    `/** A new row without the columns that the row around it determines. */
type Without<T, K> = T extends unknown ? { readonly [P in keyof T as P extends K ? never : P]: T[P] } : never;
`,
  ],
];

/** The members of a type: names, with a question mark if they may be absent, and types. */
type Members = readonly (readonly [name: string, type: string, about?: string | undefined])[];

/** Writes the types of relations. */
class Declarations {
  readonly #relations: readonly Relation[];
  readonly #byName: ReadonlyMap<string, Relation>;
  /** The names of those that the client can ask for. */
  readonly #served: readonly string[];
  readonly #misuse: (problem: string) => Error;

  constructor(relations: readonly Relation[], served: readonly string[], misuse: (problem: string) => Error) {
    this.#relations = relations;
    this.#served = served;
    this.#byName = new Map(relations.map((relation) => [relation.name, relation]));
    this.#misuse = misuse;
  }

  /** Throws the error of `misuse` if two types would have one name. */
  text(): string {
    const map = this.#relations
      .filter(({ name }) => this.#served.includes(name))
      .map((relation) => [relation.name, `${nameOf(relation)}Relation`] as const);
    const parts = this.#relations.map((relation) => this.#typesOf(relation));
    this.#checkNames(parts);
    const own = parts.join('\n');
    const used = HELPERS.filter(([name], i) => {
      const others = HELPERS.slice(i + 1).map(([, text]) => text);
      return [own, ...others].some((text) => new RegExp(`\\b${name}\\b`).test(text));
    });
    const whole = interfaceOf('Relations', map, 'The relations by name, for portico/client.');
    return [HEAD, ...used.map(([, text]) => text), own, whole].join('\n');
  }

  #checkNames(parts: readonly string[]): void {
    const known = new Map([...HELPERS, ['Relations']].map(([name]) => [name, 'a type that each file has']));
    for (const [i, part] of parts.entries()) {
      const { name: relation = '' } = this.#relations[i] ?? {};
      for (const [, name = ''] of part.matchAll(/^export (?:interface|type) (\w+)/gm)) {
        const other = known.get(name);
        if (other !== undefined)
          throw this.#misuse(
            `relations.${relation} would have the type ${name}, as ${other}; declare another "one"`,
          );
        known.set(name, `relations.${relation}`);
      }
    }
  }

  #typesOf(relation: Relation): string {
    const name = nameOf(relation);
    const { columns, shown: plain } = relation;
    const row = columns.map((column): Members[number] => {
      const mayLack = isHidden(column) || plain?.includes(column.name) === false;
      return [`${key(column.name)}${mayLack ? '?' : ''}`, jsonType(column), aboutOf(column)];
    });
    const shown = interfaceOf(name, row, `A row of ${relation.name}.`);
    const where = interfaceOf(
      `${name}Where`,
      this.#conditionsOf(relation),
      `Conditions on ${relation.name}.`,
    );
    const within = this.#embedsOf(relation);
    const embeds = within.length === 0 ? 'Record<never, never>' : `{\n${lines(within, '    ')}  }`;
    if (!this.#served.includes(relation.name)) {
      const entry = [['row', name] as const, ['where', `${name}Where`] as const, ['embeds', embeds] as const];
      return [shown, where, interfaceOf(`${name}Relation`, entry)].join('\n');
    }
    const written = relation.existing?.isView === true ? [] : columns;
    const create = written.filter((column) => isWritable(column, true));
    const patch = written.filter(
      (column) => isWritable(column, false) && !relation.key.includes(column.name),
    );
    const isGiven = relation.key.filter((each) => create.some((column) => column.name === each));
    const nested = this.#nestedOf(relation);
    const entry: Members = [
      ['row', name],
      ['create', `${name}Create`],
      ['nested', nested === undefined ? `${name}Create` : `${name}Nested`],
      ['put', isGiven.length === create.length ? NOTHING : without(`${name}Create`, isGiven)],
      ['patch', `${name}Patch`],
      ['where', `${name}Where`],
      ['key', this.#keyOf(relation)],
      ['embeds', embeds],
    ];
    return [
      shown,
      interfaceOf(
        `${name}Create`,
        create.map((column) => [
          `${key(column.name)}${isRequired(column, relation) ? '' : '?'}`,
          jsonType(column),
        ]),
        `A new row of ${relation.name}.`,
      ),
      ...(nested === undefined ? [] : [nested]),
      interfaceOf(
        `${name}Patch`,
        patch.map((column) => [`${key(column.name)}?`, jsonType(column)]),
        `A change of a row of ${relation.name}.`,
      ),
      where,
      interfaceOf(`${name}Relation`, entry),
    ].join('\n');
  }

  /** The key in a path: a value, or the parts in the order of the key. */
  #keyOf({ key: names, columns }: Relation): string {
    const typeOf = (name: string) => jsonType(columns.find((each) => each.name === name) as Column);
    const [only = ''] = names;
    if (names.length === 1) return typeOf(only);
    // A label of a tuple cannot be quoted.
    const part = (name: string) => (isIdentifier(name) ? `${name}: ${typeOf(name)}` : typeOf(name));
    return `readonly [${names.map(names.every(isIdentifier) ? part : typeOf).join(', ')}]`;
  }

  #conditionsOf(relation: Relation): Members {
    const name = nameOf(relation);
    return [
      ...relation.columns.map((column): Members[number] => [`${key(column.name)}?`, testOf(column)]),
      ...relation.references.map(({ name: each, to }): Members[number] => [
        `${key(each)}?`,
        `${this.#nameOf(to)}Where`,
      ]),
      ...this.#arraysOf(relation).map(([each, to]): Members[number] => [
        `${key(each)}?`,
        `RowsTest<${this.#nameOf(to)}Where>`,
      ]),
      ['and?', `readonly ${name}Where[]`],
      ['or?', `readonly ${name}Where[]`],
      ['not?', `${name}Where`],
    ];
  }

  /** What embedded rows are: one row, one row or null, or an array. */
  #embedsOf(relation: Relation): Members {
    return [
      ...relation.references.map((reference): Members[number] => {
        const { rules } = this.#byName.get(reference.to) ?? {};
        const isNullable =
          columnsOf(relation, reference).some((column) => column.nullable || isHidden(column)) ||
          (rules !== undefined && !rules.read.includes('anyone'));
        return [key(reference.name), `${this.#nameOf(reference.to)}Relation${isNullable ? ' | null' : ''}`];
      }),
      ...this.#arraysOf(relation).map(([name, to]): Members[number] => [
        key(name),
        `readonly ${this.#nameOf(to)}Relation[]`,
      ]),
    ];
  }

  /** The inverses and many-to-manies of a relation, each with the relation of its rows. */
  #arraysOf({ inverses, many }: Relation): readonly (readonly [name: string, to: string])[] {
    const onward = many.flatMap(({ name, through, other }) => {
      const to = this.#byName.get(through)?.references.find((each) => each.name === other)?.to;
      return to === undefined ? [] : [[name, to] as const];
    });
    return [...inverses.map(({ name, relation }) => [name, relation] as const), ...onward];
  }

  /** The references and inverses whose rows may stand within a new row. */
  #nestable(relation: Relation) {
    const shares = ({ columns }: Reference) =>
      relation.references.filter((each) => each.columns.some((name) => columns.includes(name))).length > 1;
    const references = relation.references.filter(
      (each) =>
        each.to !== USERS &&
        !shares(each) &&
        columnsOf(relation, each).every((column) => isWritable(column, true)),
    );
    const inverses = relation.inverses.flatMap((inverse) => {
      const other = this.#byName.get(inverse.relation);
      const reference = other?.references.find((each) => each.name === inverse.reference);
      return other === undefined || reference === undefined ? [] : [{ ...inverse, other, reference }];
    });
    // A user is created alone, and a row of a view not at all.
    const isAlone = relation.name === USERS || relation.existing?.isView === true;
    const isNone = isAlone || references.length + inverses.length === 0;
    return { references, inverses, isNone };
  }

  /** A new row that may have rows of others within it; undefined if it cannot. */
  #nestedOf(relation: Relation): string | undefined {
    const name = nameOf(relation);
    const { references, inverses, isNone } = this.#nestable(relation);
    if (isNone) return undefined;
    const isNeeded = (each: Reference) =>
      columnsOf(relation, each).some((column) => isRequired(column, relation));
    const needed = references.filter(isNeeded);
    const optional = references.filter((each) => !isNeeded(each));
    const own = needed.flatMap(({ columns }) => columns);
    const rest = without(`${name}Create`, own);
    const within: Members = [
      ...optional.map((each): Members[number] => {
        const isNullable = columnsOf(relation, each).every((column) => column.nullable);
        return [`${key(each.name)}?`, `${this.#nestedName(each.to)}${isNullable ? ' | null' : ''}`];
      }),
      ...inverses.map(({ name: each, other, reference }): Members[number] => {
        const names = [reference.name, ...reference.columns].map(quoted).join(' | ');
        return [`${key(each)}?`, `readonly Without<${this.#nestedName(other.name)}, ${names}>[]`];
      }),
    ];
    const either = needed.map((each) => {
      const columns = columnsOf(relation, each);
      const keys = columns.map((column) => `readonly ${key(column.name)}: ${jsonType(column)}`);
      const none = columns.map((column) => `readonly ${key(column.name)}?: never`);
      const member = `readonly ${key(each.name)}`;
      return `(\n    | { ${[...keys, `${member}?: never`].join('; ')} }\n    | { ${[`${member}: ${this.#nestedName(each.to)}`, ...none].join('; ')} }\n  )`;
    });
    const inside = within.length === 0 ? [] : [`{\n${lines(within, '    ')}  }`];
    return `/** A new row of ${relation.name}, which may have rows of other relations within it. */\nexport type ${name}Nested = ${[rest, ...inside, ...either].join(' &\n  ')};\n`;
  }

  #nestedName(relation: string): string {
    const found = this.#byName.get(relation);
    const isNone = found === undefined || this.#nestable(found).isNone;
    return `${this.#nameOf(relation)}${isNone ? 'Create' : 'Nested'}`;
  }

  #nameOf(relation: string): string {
    const found = this.#byName.get(relation);
    if (found === undefined) throw new Error(`There is no relation ${relation}`);
    return nameOf(found);
  }
}

/** The name of the type of a relation's rows, as in GraphQL. */
function nameOf({ one }: Relation): string {
  const name = one.replaceAll(/\W/g, '_');
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

function columnsOf({ columns }: Relation, { columns: names }: Reference): readonly Column[] {
  return columns.filter(({ name }) => names.includes(name));
}

/** Whether some callers get rows without the column. */
function isHidden({ rules }: Column): boolean {
  return rules?.read !== undefined && !rules.read.includes('anyone');
}

/** Whether some caller may give the column a value. */
function isWritable(column: Column, isNew: boolean): boolean {
  const { set, fixed, write } = column.rules ?? {};
  if (isAssigned(column) || set !== undefined || fixed === 'readonly' || write?.length === 0) return false;
  return isNew || fixed !== 'immutable';
}

function isRequired(column: Column, { key: names }: Relation): boolean {
  const isNumbered = column.type.kind === 'serial' && names.includes(column.name);
  return !isNumbered && !column.nullable && column.default === undefined;
}

/** The type of a value in JSON. */
function jsonType({ type, nullable }: Column): string {
  if (type.kind === 'json') return nullable ? 'JsonValue' : 'NonNullable<JsonValue>';
  return `${plainOf(type)}${nullable ? ' | null' : ''}`;
}

function plainOf(type: Column['type']): string {
  switch (type.kind) {
    case 'serial':
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'enum':
      return type.values.map(quoted).join(' | ');
    default:
      return 'string';
  }
}

/** The type of the conditions on a column. */
function testOf({ type }: Column): string {
  if (type.kind === 'json') return 'null | { readonly isNull: boolean }';
  return type.kind === 'text' ? 'TextTest' : `ColumnTest<${plainOf(type)}>`;
}

/** What a text stands for. */
function aboutOf({ type }: Column): string | undefined {
  switch (type.kind) {
    case 'bigint':
      return 'A whole number of 64 bits.';
    case 'decimal':
      return type.scale === 0
        ? 'An exact whole number.'
        : `An exact number with ${type.scale} digits behind the point.`;
    case 'date':
      return 'A date, such as 2024-02-29.';
    case 'timestamp':
      return 'A time in UTC, such as 2024-02-29T12:30:00.000Z.';
    case 'uuid':
      return 'A UUID.';
    case 'bytes':
      return 'Bytes in base64.';
    default:
      return undefined;
  }
}

/** Without members an interface would take any object. */
const NOTHING = '{ readonly [name: string]: never }';

function without(type: string, names: readonly string[]): string {
  return names.length === 0 ? type : `Omit<${type}, ${names.map(quoted).join(' | ')}>`;
}

function interfaceOf(name: string, members: Members, about?: string): string {
  const comment = about === undefined ? '' : `/** ${about} */\n`;
  if (members.length === 0) return `${comment}export type ${name} = ${NOTHING};\n`;
  return `${comment}export interface ${name} {\n${lines(members, '  ')}}\n`;
}

function lines(members: Members, indent: string): string {
  return members
    .map(([name, type, about]) => {
      const comment = about === undefined ? '' : `${indent}/** ${about} */\n`;
      return `${comment}${indent}readonly ${name}: ${type};\n`;
    })
    .join('');
}

/** A text as a literal of TypeScript, which no sign of the text ends. */
function quoted(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${escaped.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`;
}

function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** The name of a member. */
function key(name: string): string {
  return isIdentifier(name) ? name : quoted(name);
}
