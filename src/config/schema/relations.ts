import { didYouMean, quote } from '../../core/text.ts';
import {
  type Column,
  type ColumnType,
  type Reference,
  type Relation,
  USER_COLUMNS,
  USERS,
} from '../../relations/relation.ts';
import { defaultOf, indexedBytes, typeOf } from './columns.ts';
import { readComputed } from './computed.ts';
import { type Given, namedOf, pathTo } from './fields.ts';
import { checkHooks, readHooks } from './hooks.ts';
import { manyOf } from './many.ts';
import { type Draft, type Field, keyOf, readDraft } from './relation-draft.ts';
import { checkInverses, checkNames } from './relation-names.ts';
import { checkRuleTrees, columnRules, readRules } from './rules.ts';
import { checkUsersDefaults, readUsersDraft, withForms } from './users-draft.ts';

const MAX_RELATIONS = 200;
/** Maximum number of unique constraints and indexes of one relation. */
const MAX_INDEXES = 60;
/** Maximum number of columns of one key or index; PostgreSQL takes 32. */
const MAX_INDEXED = 16;
/** Maximum size of an entry of an index on PostgreSQL, less what it needs for itself. */
const MAX_INDEXED_BYTES = 2_600;

type Unlinked = Omit<Relation, 'inverses' | 'many'>;

/**
 * Reads the relations of a configuration, with that of users if it is declared, referred to or served as one. Appends
 * one line per problem to `problems`, with its path; returns no relations then.
 */
export function readRelations(
  given: Given,
  problems: string[],
  { servesUsers = false }: { readonly servesUsers?: boolean } = {},
): readonly Relation[] {
  const before = problems.length;
  const named = namedOf(given, 'relations by name', problems);
  if (named.length > MAX_RELATIONS) {
    problems.push(`${given.path} has ${named.length} relations; at most ${MAX_RELATIONS} are possible`);
    return [];
  }
  const keys = new Map(named.map(({ name, value }) => [name, keyOf(value)]));
  keys.set(USERS, ['id']);
  const users = named.find(({ name }) => name === USERS);
  const declared = named.filter((each) => each !== users).map((each) => readDraft(each, keys, problems));
  const refersToUsers = declared.some(({ references }) =>
    [...references.values()].some(({ data }) => data.to === USERS),
  );
  const ofUsers = users ?? { name: USERS, value: undefined, path: pathTo(given.path, USERS) };
  const hasUsers = servesUsers || refersToUsers || users !== undefined;
  const drafts = hasUsers ? [...declared, readUsersDraft(ofUsers, keys, problems)] : declared;
  const reader = new Resolver(drafts, problems);
  const relations = drafts.map((draft) => {
    const relation = reader.relation(draft);
    if (draft.name !== USERS) return relation;
    return servesUsers ? withForms(relation) : { ...relation, shown: USER_COLUMNS };
  });
  checkNames(declared, relations, problems);
  for (const [i, draft] of drafts.entries()) {
    const relation = relations[i];
    if (draft.name === USERS && relation !== undefined) checkUsersDefaults(draft, relation, problems);
  }
  checkInverses(drafts, problems);
  if (problems.length > before) return [];
  const linked = relations.map((relation) => ({
    ...relation,
    inverses: inversesOf(relation.name, relations),
  }));
  const whole = linked.map((relation, i) => ({
    ...relation,
    many: manyOf(drafts[i] as Draft, relation, linked, problems),
  }));
  if (problems.length > before) return [];
  checkRuleTrees(whole, ({ name }) => pathTo(given.path, name), problems);
  checkHooks(whole, (name) => pathTo(given.path, name), problems);
  return problems.length > before ? [] : whole;
}

function inversesOf(name: string, relations: readonly Unlinked[]): Relation['inverses'] {
  return relations.flatMap((relation) =>
    relation.references
      .filter(({ to }) => to === name)
      .map(({ inverse, name: reference }) => ({ name: inverse, relation: relation.name, reference })),
  );
}

/** Turns drafts into relations, without their inverses. */
class Resolver {
  readonly #drafts: ReadonlyMap<string, Draft>;
  readonly #problems: string[];
  readonly #types = new Map<Field, ColumnType | undefined>();
  /** The fields on the way to a type: a reference that comes back to one of them is circular. */
  readonly #open = new Set<Field>();

  constructor(drafts: readonly Draft[], problems: string[]) {
    this.#drafts = new Map(drafts.map((draft) => [draft.name, draft]));
    this.#problems = problems;
  }

  relation(draft: Draft): Unlinked {
    const { name, path, options, fields } = draft;
    const columns = Array.from(fields.values(), (field) => this.#column(draft, field)).filter(isGiven);
    const isExisting = options.existing === true;
    if (isExisting) this.#checkExisting(draft);
    const before = readHooks({ value: options.before, path: `${path}.before` }, this.#problems);
    const computed = readComputed(
      { value: options.computed, path: `${path}.computed` },
      columns,
      this.#problems,
    );
    const uniques = Array.from(fields.values(), (field) => this.#uniqueOf(draft, field)).filter(isGiven);
    const referenced = [...draft.references].flatMap(([, { data, columns }]) =>
      data.unique ? [columns] : [],
    );
    const unique = this.#lists(draft, computed, 'unique', [
      ...(options.unique ?? []),
      ...uniques,
      ...referenced,
    ]);
    const indexes = this.#lists(draft, computed, 'indexes', options.indexes ?? []);
    if (unique.length + indexes.length > MAX_INDEXES)
      this.#problems.push(`${path} has more than ${MAX_INDEXES} unique constraints and indexes`);
    if (draft.isComplete) this.#checkKey(draft, computed);
    return {
      name,
      one: options.one ?? this.#singular(draft),
      table: options.table ?? name,
      was: options.was,
      columns: [...columns, ...computed],
      key: draft.key,
      unique,
      indexes,
      references: Array.from(draft.references, ([each]) => this.#reference(draft, each)).filter(isGiven),
      changes: isExisting ? false : (options.changes ?? true),
      ...(isExisting && {
        existing: { schema: options.schema, isView: false, hasDigest: false, constraints: new Map() },
      }),
      ...(before !== undefined && { before }),
      ...(options.rules !== undefined && {
        rules: readRules({ value: options.rules, path: `${path}.rules` }, this.#problems),
      }),
    };
  }

  /** What goes with a table of Portico only. */
  #checkExisting({ path, options, fields }: Draft): void {
    if (options.changes === true)
      this.#problems.push(
        `${path}.changes is not possible for an existing table, whose changes only triggers would record`,
      );
    for (const option of ['was', 'computed'] as const) {
      if (options[option] !== undefined)
        this.#problems.push(
          `${path}.${option} is not possible for an existing table, which Portico does not change`,
        );
    }
    for (const { path, data } of fields.values()) {
      if (data?.was !== undefined)
        this.#problems.push(
          `${path}.was is not possible for an existing table, which Portico does not change`,
        );
    }
  }

  /** By three rules: -ies, -s, else it must be written. */
  #singular({ name, path }: Draft): string {
    if (/[a-z]ies$/.test(name)) return name.replace(/ies$/, 'y');
    if (/[^s]s$/.test(name)) return name.slice(0, -1);
    this.#problems.push(`${path}.one is missing: the singular of ${name}`);
    return name;
  }

  #column(draft: Draft, field: Field): Column | undefined {
    const { name, path, data } = field;
    const type = this.#type(field);
    if (data === undefined || type === undefined) return undefined;
    if (data.kind === 'serial') return { name, type, nullable: false, default: undefined, was: data.was };
    const isOnlyKey = draft.key.length === 1 && draft.key[0] === name;
    const given = data.default === undefined && isOnlyKey && data.kind === 'uuid' ? 'v7' : data.default;
    const isComposite = data.kind === 'reference' && (data.columns?.length ?? 1) > 1;
    if (isComposite && given !== undefined)
      this.#problems.push(`${path}.default is possible for a single column only; declare the columns`);
    if (isComposite && data.was !== undefined)
      this.#problems.push(`${path}.was is possible for a single column only; declare the columns`);
    const was =
      data.kind === 'reference' && data.columns === undefined && data.was ? `${data.was}_id` : data.was;
    if (was !== undefined && draft.fields.has(was))
      this.#problems.push(`${path}.was names ${was}, which is still a column`);
    const isKey = draft.key.includes(name);
    const rules = columnRules(data, { path, isKey }, this.#problems);
    return {
      name,
      type,
      nullable: data.nullable ?? false,
      default: isComposite ? undefined : this.#default(field, type, given),
      was,
      ...(data.generated === 'always' && { isGenerated: true }),
      ...(rules !== undefined && { rules }),
    };
  }

  #default({ path, data }: Field, type: ColumnType, given: unknown): Column['default'] {
    if (data === undefined || !('generated' in data) || data.generated !== 'by default')
      return defaultOf(type, given, path, this.#problems);
    if (given !== undefined) this.#problems.push(`${path}.default is that of the database; leave it out`);
    return { kind: 'database' };
  }

  /** The type of a field; undefined if it has problems. */
  #type(field: Field): ColumnType | undefined {
    if (this.#types.has(field)) return this.#types.get(field);
    if (this.#open.has(field)) {
      this.#problems.push(`${field.path} refers to itself through keys, so it has no type`);
      return undefined;
    }
    this.#open.add(field);
    const type = this.#findType(field);
    this.#open.delete(field);
    this.#types.set(field, type);
    return type;
  }

  #findType({ data, path, place }: Field): ColumnType | undefined {
    if (data === undefined) return undefined;
    if (data.kind !== 'reference') return typeOf(data, path, this.#problems);
    const target = this.#drafts.get(data.to);
    const found = target?.fields.get(target.key[place] ?? '');
    const type = found === undefined ? undefined : this.#type(found);
    return type?.kind === 'serial' ? { kind: 'integer' } : type;
  }

  #reference(
    { name: relation, path: place, fields, references }: Draft,
    name: string,
  ): Reference | undefined {
    const path = pathTo(`${place}.columns`, name);
    const { data, columns } = references.get(name) ?? {};
    const target = this.#drafts.get(data?.to ?? '');
    if (data === undefined || columns === undefined || target === undefined) return undefined;
    for (const [at, column] of columns.entries()) {
      const own = fields.get(column);
      const other = target.fields.get(target.key[at] ?? '');
      if (own === undefined || other === undefined) continue;
      const types = [this.#type(own), this.#type(other)].map(comparedType);
      if (types[0] !== undefined && types[1] !== undefined && types[0] !== types[1])
        this.#problems.push(`${path} needs ${column} to have the type of ${target.name}.${other.name}`);
      const isNullable = own.data !== undefined && 'nullable' in own.data && own.data.nullable === true;
      if (data.onDelete === 'null' && own.data !== undefined && !isNullable)
        this.#problems.push(`${path}.onDelete "null" needs ${column} to be nullable`);
    }
    return {
      name,
      to: data.to,
      columns,
      targetColumns: target.key,
      inverse: data.inverse ?? relation,
      onDelete: data.onDelete ?? 'restrict',
    };
  }

  #uniqueOf(draft: Draft, { name, data }: Field): readonly string[] | undefined {
    if (data === undefined || data.kind === 'serial' || data.kind === 'reference') return undefined;
    return data.unique && !(draft.key.length === 1 && draft.key[0] === name) ? [name] : undefined;
  }

  #checkKey(draft: Draft, computed: readonly Column[]): void {
    this.#checkList(draft, computed, draft.key, `${draft.path}.key`);
    for (const name of draft.key) {
      const { data, path } = draft.fields.get(name) ?? {};
      if (data !== undefined && 'nullable' in data && data.nullable)
        this.#problems.push(`${path}.nullable is not possible for a column of the key`);
      // A reference compares bytes on PostgreSQL, whatever its target does.
      if (data?.kind === 'text' && data.fold && !draft.options.existing)
        this.#problems.push(
          `${path}.fold is not possible for a column of the key; make another column unique`,
        );
    }
    for (const { name, data, path } of draft.fields.values()) {
      if (data?.kind === 'serial' && !(draft.key.length === 1 && draft.key[0] === name))
        this.#problems.push(`${path} must be the only column of the key, because it is a serial`);
    }
  }

  #lists(
    draft: Draft,
    computed: readonly Column[],
    option: 'unique' | 'indexes',
    lists: readonly (readonly string[])[],
  ) {
    const seen = new Set([draft.key.join()]);
    for (const [at, columns] of lists.entries()) {
      // Those of columns come after those of the relation.
      const isDeclared = at < (draft.options[option]?.length ?? 0);
      const path = `${draft.path}.${option}${isDeclared ? `[${at}]` : ''}`;
      if (seen.has(columns.join())) this.#problems.push(`${path} (${columns.join(', ')}) is there already`);
      seen.add(columns.join());
      this.#checkList(draft, computed, columns, path, option === 'indexes');
    }
    return lists;
  }

  /** Checks the columns of a key, a unique constraint or an index. */
  #checkList(
    { fields, references, options: { existing: isExisting } }: Draft,
    computed: readonly Column[],
    columns: readonly string[],
    path: string,
    takesComputed = false,
  ): void {
    if (columns.length === 0) this.#problems.push(`${path} must name a column`);
    if (columns.length > MAX_INDEXED) this.#problems.push(`${path} must name at most ${MAX_INDEXED} columns`);
    if (new Set(columns).size < columns.length) this.#problems.push(`${path} names a column twice`);
    let bytes = 0;
    for (const name of columns) {
      const field = fields.get(name);
      const found = computed.find((each) => each.name === name);
      if (found !== undefined) {
        if (!takesComputed)
          this.#problems.push(`${path} ${quote(name)} is computed; it goes into indexes only`);
        bytes += indexedBytes(found.type) ?? 0;
        continue;
      }
      if (field === undefined) {
        const made = references.get(name)?.columns.join(', ');
        const guess =
          made === undefined
            ? didYouMean(name, [...fields.keys(), ...computed.map((each) => each.name)])
            : `; a reference has no value, but ${made}`;
        this.#problems.push(`${path} ${quote(name)} is not a column${guess}`);
        continue;
      }
      const type = this.#type(field);
      const size = type === undefined ? 0 : indexedBytes(type);
      if (size === undefined)
        this.#problems.push(`${path} ${quote(name)} is of type json, which no index takes`);
      bytes += size ?? 0;
    }
    // What another program has indexed fits.
    if (bytes > MAX_INDEXED_BYTES && !isExisting)
      this.#problems.push(
        `${path} takes up to ${bytes} bytes, 4 for each character; an index takes at most ${MAX_INDEXED_BYTES}, so lower max`,
      );
  }
}

const isGiven = <T>(value: T | undefined): value is T => value !== undefined;

/** Types of columns that refer to each other: their bounds do not matter. */
function comparedType(type: ColumnType | undefined): string | undefined {
  if (type === undefined) return undefined;
  switch (type.kind) {
    case 'serial':
      return 'integer';
    case 'decimal':
      return `decimal ${type.precision} ${type.scale}`;
    case 'text':
      return `text ${type.fold}`;
    case 'enum':
      return `enum ${JSON.stringify(type.values)}`;
    default:
      return type.kind;
  }
}
