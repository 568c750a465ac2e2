import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { type GraphQLInputType, print, valueToLiteral } from 'graphql';
import { typeNameOf } from '../../../src/graphql/relations/types.ts';
import type { Column, Relation } from '../../../src/relations/relation.ts';
import { linkOf } from '../../../src/relations/selections/selection.ts';
import { type Body, Model, type ModelRow, type Outcome, type Tree } from '../../support/relations/model.ts';
import { jsonOf } from '../../support/relations/random-columns.ts';
import { bodies, declarations } from '../../support/relations/random-declarations.ts';
import { graphqlRelationDoors, type RelationsDoor } from '../support/relations-door.ts';
import { comparableAggregates, ReferenceDoor, shownRow, shownValue } from '../support/relations-reference.ts';

const RUNS: Readonly<Record<string, number>> = { sqlite: 6, postgres: 3 };
const WRITES = 30;
const QUERIES = 15;
const CODES = { taken: 'TAKEN', missing: 'REFERENCE_MISSING', referenced: 'REFERENCED' } as const;

/** Random documents are larger than those of most clients. */
const LIMITS = {
  maxAliases: 1_000,
  maxFields: 10_000,
  maxDirectives: 1_000,
  maxTokens: 10_000,
  maxDepth: 50,
};

type Draw = fc.GeneratorValue;

/** Random mutations and queries on a door, on a model, and on GraphQL.js over the model. */
class Comparison {
  readonly #door: RelationsDoor;
  readonly #model: Model;
  readonly #reference: ReferenceDoor;
  readonly #relations: readonly Relation[];
  readonly #draw: Draw;

  constructor(door: RelationsDoor, relations: readonly Relation[], draw: Draw) {
    this.#door = door;
    this.#relations = relations;
    this.#model = new Model(relations);
    this.#reference = new ReferenceDoor(door.schema, relations, this.#model);
    this.#draw = draw;
  }

  async run(): Promise<void> {
    for (let left = WRITES; left > 0; left--) {
      const relation = this.#draw(() => fc.constantFrom(...this.#relations));
      const operation = this.#draw(() => fc.constantFrom('create', 'create', 'create', 'update', 'remove'));
      await this[`#${operation}` as '#create'](relation);
    }
    for (let left = QUERIES; left > 0; left--) await this.#query();
  }

  async '#create'(relation: Relation): Promise<void> {
    const { name } = relation;
    const type = typeNameOf(relation);
    const data = this.#withReferences(relation, this.#draw(bodies, relation));
    const names = relation.columns.map((column) => column.name).join(' ');
    const { body, text } = await this.#door.ask({
      query: `mutation ($data: ${type}Create!) { row: create${type}(data: $data) { ${names} } }`,
      variables: { data },
    });
    const serial = relation.columns.find((column) => column.type.kind === 'serial');
    const row = body.data?.row as Body | undefined;
    const found = serial && row?.[serial.name];
    const given = found === undefined ? undefined : Number(found);
    this.#agree(relation, text, row, this.#model.create(name, data, given), data);
  }

  async '#update'(relation: Relation): Promise<void> {
    const row = this.#any(relation);
    if (row === undefined) return;
    const type = typeNameOf(relation);
    const whole = this.#withReferences(relation, this.#draw(bodies, relation));
    const names = this.#draw(() => fc.subarray(Object.keys(whole), { minLength: 0 }));
    const data = Object.fromEntries(
      names.filter((name) => !relation.key.includes(name)).map((name) => [name, whole[name]]),
    );
    const columns = relation.columns.map((column) => column.name).join(' ');
    const { body, text } = await this.#door.ask({
      query: `mutation ($data: ${type}Patch!) { row: update${type}(${this.#key(relation, row)}, data: $data) { ${columns} } }`,
      variables: { data },
    });
    const found = body.data?.row as Body | undefined;
    this.#agree(relation, text, found, this.#model.update(relation.name, row, data), data);
  }

  async '#remove'(relation: Relation): Promise<void> {
    const row = this.#any(relation);
    if (row === undefined || this.#model.isEntangled(relation.name, row)) return;
    const query = `mutation { is: delete${typeNameOf(relation)}(${this.#key(relation, row)}) }`;
    const { body, text } = await this.#door.ask(query);
    const outcome = this.#model.remove(relation.name, row);
    if (outcome.is === 'done') assert.deepEqual(body.data, { is: true }, text);
    else this.#agree(relation, text, undefined, outcome, query);
  }

  #agree(relation: Relation, text: string, row: Body | undefined, outcome: Outcome, written: unknown): void {
    const context = `${text} ${inspect({ relation: relation.name, written, outcome }, { depth: 6 })}`;
    if (outcome.is === 'done') {
      assert.deepEqual(row, shownRow(relation, outcome.row), context);
      return;
    }
    const { data, errors } = JSON.parse(text);
    assert.deepEqual([data, errors.length], [null, 1], context);
    const { code } = errors[0].extensions;
    if (outcome.is === 'absent') assert.equal(code, 'NOT_FOUND', context);
    else
      assert.ok(
        outcome.conflicts.some(({ is }) => CODES[is] === code),
        context,
      );
  }

  /** A random document gives what GraphQL.js gives for it over plain resolvers. */
  async #query(): Promise<void> {
    const document = new RandomDocument(this.#door, this.#model, this.#relations, this.#draw);
    const { query, variables } = document.make();
    const expected = await this.#reference.query(query, variables);
    const { body, text } = await this.#door.ask({ query, variables });
    const context = `${query} ${JSON.stringify(variables)} ${text}`;
    assert.equal(expected.errors, undefined, context);
    // Few documents have more nested lists than a read may have, or sums that JSON cannot write.
    if (/ \((?:embeds|sum)\)/.test(body.errors?.[0]?.message ?? '')) return;
    // The order of the members counts too.
    assert.equal(JSON.stringify(body), JSON.stringify(expected), context);
  }

  #key(relation: Relation, row: ModelRow): string {
    return keyLiteral(this.#door, relation, row);
  }

  #any({ name }: Relation): ModelRow | undefined {
    const rows = this.#model.rows(name);
    return rows.length === 0 ? undefined : rows[this.#draw(() => fc.nat({ max: rows.length - 1 }))];
  }

  /** A body with references to rows that are there, most of the time. */
  #withReferences(relation: Relation, body: Body): Body {
    const filled: Record<string, unknown> = { ...body };
    for (const { to, columns, targetColumns } of relation.references) {
      const target = this.#model.relation(to);
      const row = this.#any(target);
      const choice = this.#draw(() => fc.nat({ max: 9 }));
      for (const [i, name] of columns.entries()) {
        const own = relation.columns.find((each) => each.name === name);
        const other = target.columns.find((each) => each.name === targetColumns[i]);
        if (own === undefined || other === undefined) continue;
        if (own.nullable && (choice < 2 || row === undefined)) filled[name] = null;
        else if (row === undefined || choice === 9) filled[name] = this.#draw(jsonOf, own.type);
        else filled[name] = shownValue(other, row);
      }
    }
    return filled;
  }
}

/** The arguments that are the key of a row, as literals. */
function keyLiteral({ schema }: RelationsDoor, relation: Relation, row: ModelRow): string {
  const field = schema.getQueryType()?.getFields()[relation.one];
  return relation.key
    .map((name) => {
      const column = relation.columns.find((each) => each.name === name) as Column;
      const type = field?.args.find((each) => each.name === name)?.type;
      return `${name}: ${literal(shownValue(column, row), type as GraphQLInputType)}`;
    })
    .join(', ');
}

function literal(value: unknown, type: GraphQLInputType): string {
  const node = valueToLiteral(value, type);
  assert.ok(node !== undefined, `${JSON.stringify(value)} as ${type}`);
  return print(node);
}

/** Writes a random document over relations. */
class RandomDocument {
  readonly #door: RelationsDoor;
  readonly #model: Model;
  readonly #relations: readonly Relation[];
  readonly #draw: Draw;
  readonly #variables = new Map<string, { readonly type: string; readonly value: unknown }>();
  readonly #fragments: string[] = [];
  #next = 0;

  constructor(door: RelationsDoor, model: Model, relations: readonly Relation[], draw: Draw) {
    this.#door = door;
    this.#model = model;
    this.#relations = relations;
    this.#draw = draw;
  }

  make(): { readonly query: string; readonly variables: Readonly<Record<string, unknown>> } {
    const fields = Array.from({ length: 1 + this.#nat(1) }, () => this.#root()).join(' ');
    const declared = Array.from(this.#variables, ([name, { type }]) => `$${name}: ${type}`);
    const head = declared.length === 0 ? 'query' : `query (${declared.join(', ')})`;
    return {
      query: [`${head} { ${fields} }`, ...this.#fragments].join('\n'),
      variables: Object.fromEntries(Array.from(this.#variables, ([name, { value }]) => [name, value])),
    };
  }

  #root(): string {
    const relation = this.#draw(() => fc.constantFrom(...this.#relations));
    const rows = this.#model.rows(relation.name);
    const row = rows[this.#nat(Math.max(0, rows.length - 1))];
    if (this.#nat(4) === 0) return `${this.#alias()}${this.#aggregate(relation)}`;
    if (row !== undefined && this.#nat(4) === 0)
      return `${this.#alias()}${relation.one}(${keyLiteral(this.#door, relation, row)}) ${this.#selection(relation, 3)}`;
    return `${this.#alias()}${relation.name}${this.#listArguments(relation)} ${this.#selection(relation, 3)}`;
  }

  #aggregate(relation: Relation): string {
    const type = typeNameOf(relation);
    const names = relation.columns
      .filter((column) => column.name !== 'id' && column.type.kind !== 'json')
      .map((column) => column.name);
    const group = this.#draw(() => fc.subarray(names, { maxLength: Math.min(2, names.length) }));
    const all = comparableAggregates(relation);
    const chosen = this.#draw(() => fc.subarray([...all], { maxLength: Math.min(4, all.length) }));
    const fields = chosen.map(([is, column]) => `${this.#alias()}${is} { ${this.#alias()}${column} }`);
    if (group.length > 0) fields.unshift(`group { ${group.join(' ')} }`);
    const where = `where: ${this.#value(`${type}Where`, this.#tree(relation, 2))}`;
    const by = group.length === 0 ? '' : `, groupBy: ${this.#value(`[${type}GroupBy!]`, group)}`;
    return `${relation.name}Aggregate(${where}${by}) { ${fields.join(' ')} count${this.#directive()} __typename }`;
  }

  #selection(relation: Relation, depth: number): string {
    const count = 1 + this.#nat(3);
    const parts = Array.from({ length: count }, () => this.#part(relation, depth));
    return `{ ${parts.join(' ')} }`;
  }

  #part(relation: Relation, depth: number): string {
    const kinds = [
      'column',
      'column',
      'name',
      ...(depth > 0 ? ['reference', 'inverse', 'inline', 'fragment'] : []),
    ];
    const kind = this.#draw(() => fc.constantFrom(...kinds));
    const type = typeNameOf(relation);
    const [reference] = this.#shuffled(relation.references);
    const [inverse] = this.#shuffled([...relation.inverses, ...relation.many]);
    if (kind === 'name') return `${this.#alias()}__typename${this.#directive()}`;
    if (kind === 'inline') {
      const condition = this.#nat(1) === 0 ? '' : ` on ${type}`;
      return `...${condition}${this.#directive()} ${this.#selection(relation, depth - 1)}`;
    }
    if (kind === 'fragment') {
      const name = `F${this.#next++}`;
      this.#fragments.push(`fragment ${name} on ${type} ${this.#selection(relation, depth - 1)}`);
      return `...${name}${this.#directive()}`;
    }
    if (kind === 'reference' && reference !== undefined) {
      const target = this.#model.relation(reference.to);
      // Without an alias, selections of the same reference are merged.
      const alias = this.#nat(1) === 0 ? '' : this.#alias();
      return `${alias}${reference.name}${this.#directive()} ${this.#selection(target, depth - 1)}`;
    }
    if (kind === 'inverse' && inverse !== undefined) {
      const target = this.#targetOf(relation, inverse);
      return `${this.#alias()}${inverse.name}${this.#listArguments(target)}${this.#directive()} ${this.#selection(target, depth - 1)}`;
    }
    const column = this.#draw(() => fc.constantFrom(...relation.columns));
    return `${this.#nat(2) === 0 ? this.#alias() : ''}${column.name}`;
  }

  #listArguments(relation: Relation): string {
    const type = typeNameOf(relation);
    const given: string[] = [];
    if (this.#nat(2) > 0) given.push(`where: ${this.#value(`${type}Where`, this.#tree(relation, 2))}`);
    const order = this.#order(relation);
    if (order.length > 0) given.push(`orderBy: ${this.#value(`[${type}Order!]`, order)}`);
    if (this.#nat(2) === 0) given.push(`limit: ${this.#value('Int', 1 + this.#nat(3))}`);
    return given.length === 0 ? '' : `(${given.join(', ')})`;
  }

  /** A value as a literal or as a variable. */
  #value(type: string, value: unknown): string {
    if (this.#nat(1) === 0) {
      const name = `v${this.#next++}`;
      this.#variables.set(name, { type, value });
      return `$${name}`;
    }
    const named = this.#door.schema.getType(type.replaceAll(/[[\]!]/g, '')) as GraphQLInputType;
    if (!Array.isArray(value)) return literal(value, named);
    return `[${value.map((each) => literal(each, named)).join(', ')}]`;
  }

  #order(relation: Relation): readonly unknown[] {
    const sortable = relation.columns.filter(({ type }) => type.kind !== 'json' && type.kind !== 'bytes');
    const direction = () => this.#draw(() => fc.constantFrom('ASC', 'DESC'));
    return this.#draw(() => fc.subarray(sortable, { maxLength: Math.min(2, sortable.length) })).map(
      ({ name }) => ({
        [name]: direction(),
      }),
    );
  }

  #directive(): string {
    const kind = this.#nat(9);
    if (kind > 1) return '';
    const name = kind === 0 ? 'include' : 'skip';
    return ` @${name}(if: ${this.#value('Boolean!', this.#nat(1) === 0)})`;
  }

  #alias(): string {
    return `a${this.#next++}: `;
  }

  #tree(relation: Relation, depth: number): Tree {
    const count = this.#nat(2);
    return Object.assign({}, ...Array.from({ length: count }, () => this.#condition(relation, depth)));
  }

  #condition(relation: Relation, depth: number): Tree {
    const kinds = ['column', 'column', ...(depth > 0 ? ['and', 'or', 'not', 'reference', 'inverse'] : [])];
    const kind = this.#draw(() => fc.constantFrom(...kinds));
    const inner = (of = relation) => this.#tree(of, depth - 1);
    const [reference] = this.#shuffled(relation.references);
    const [inverse] = this.#shuffled([...relation.inverses, ...relation.many]);
    if (kind === 'not') return { not: inner() };
    if (kind === 'and' || kind === 'or') return { [kind]: [inner(), inner()] };
    if (kind === 'reference' && reference !== undefined)
      return { [reference.name]: inner(this.#model.relation(reference.to)) };
    if (kind === 'inverse' && inverse !== undefined) {
      const quantifier = this.#draw(() => fc.constantFrom('some', 'none', 'every'));
      return { [inverse.name]: { [quantifier]: inner(this.#targetOf(relation, inverse)) } };
    }
    const column = this.#draw(() => fc.constantFrom(...relation.columns));
    return { [column.name]: this.#test(relation, column) };
  }

  #test(relation: Relation, column: Column): Tree {
    const { kind } = column.type;
    const value = () => {
      const rows = this.#model.rows(relation.name);
      const row = rows[this.#nat(Math.max(0, rows.length - 1))];
      const known = row === undefined ? null : shownValue(column, row);
      return known ?? this.#draw(jsonOf, column.type);
    };
    if (kind === 'json') return { isNull: this.#nat(1) === 0 };
    const ordered =
      kind === 'boolean' || kind === 'bytes' || kind === 'enum' ? [] : ['lt', 'lte', 'gt', 'gte'];
    const test = this.#draw(() => fc.constantFrom('eq', 'ne', 'in', 'isNull', ...ordered));
    if (test === 'isNull') return { isNull: this.#nat(1) === 0 };
    return { [test]: test === 'in' ? [value(), value()] : value() };
  }

  /** The relation behind an inverse or a many-to-many. */
  #targetOf({ name }: Relation, link: Pick<Relation['inverses'][number], 'name'>): Relation {
    const all = new Map(this.#relations.map((each) => [each.name, each]));
    const target = linkOf(all, this.#model.relation(name), link.name)?.relation;
    assert.ok(target !== undefined);
    return target;
  }

  #shuffled<T>(all: readonly T[]): readonly T[] {
    return all.length === 0 ? [] : [all[this.#nat(all.length - 1)] as T];
  }

  #nat(max: number): number {
    return this.#draw(() => fc.nat({ max }));
  }
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  test(`random documents over random relations give on ${engine} what GraphQL.js gives over arrays`, async () => {
    await fc.assert(
      fc.asyncProperty(declarations, fc.gen(), async ({ relations }, draw) => {
        await using door = await open(relations, { limits: LIMITS });
        await new Comparison(door, relations, draw).run();
      }),
      { numRuns: RUNS[engine] ?? 1, endOnFailure: true },
    );
  });
}
