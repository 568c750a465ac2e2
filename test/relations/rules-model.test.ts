import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import type { GraphQLSchema } from 'graphql';
import { isId, typeNameOf } from '../../src/graphql/relations/types.ts';
import { codecOf } from '../../src/relations/codecs.ts';
import { type Column, OPERATIONS, type Operation, type Relation } from '../../src/relations/relation.ts';
import { GraphqlWrites } from '../support/relations/graphql-writes.ts';
import { type Body, Model, type ModelRow, type Tree } from '../support/relations/model.ts';
import { jsonOf } from '../support/relations/random-columns.ts';
import { bodies, declarations } from '../support/relations/random-declarations.ts';
import { type Caller, ruledDoors } from '../support/relations/ruled-door.ts';

const RUNS: Readonly<Record<string, number>> = { sqlite: 8, postgres: 5 };
const STEPS = 40;

type Draw = fc.GeneratorValue;
type Rules = Readonly<Record<Operation, Tree>>;

/** A caller with the claims of its token. */
interface Known {
  readonly caller: Caller;
  readonly claims: Body;
  readonly isRoot: boolean;
}

/** Random trees of rules and of filters. */
class Trees {
  readonly #relations: ReadonlyMap<string, Relation>;
  readonly #draw: Draw;

  constructor(relations: readonly Relation[], draw: Draw) {
    this.#relations = new Map(relations.map((relation) => [relation.name, relation]));
    this.#draw = draw;
  }

  tree({ name }: Relation, depth: number, hasClaims: boolean): Tree {
    const relation = this.#relations.get(name) as Relation;
    const count = this.#draw(() => fc.integer({ min: depth === 3 ? 1 : 0, max: 2 }));
    return Object.assign(
      {},
      ...Array.from({ length: count }, () => this.#condition(relation, depth, hasClaims)),
    );
  }

  #condition(relation: Relation, depth: number, hasClaims: boolean): Tree {
    const kinds = [
      'column',
      'column',
      'column',
      ...(depth > 0 ? ['or', 'not', 'reference', 'reference', 'inverse', 'inverse'] : []),
    ];
    const kind = this.#draw(() => fc.constantFrom(...kinds));
    const inner = (of = relation) => this.tree(of, depth - 1, hasClaims);
    if (kind === 'not') return { not: inner() };
    if (kind === 'or') return { [this.#draw(() => fc.constantFrom('and', 'or'))]: [inner(), inner()] };
    const reference = relation.references.at(-1);
    if (kind === 'reference' && reference !== undefined)
      return { [reference.name]: inner(this.#relations.get(reference.to)) };
    const inverse = relation.inverses[0];
    if (kind === 'inverse' && inverse !== undefined) {
      const quantifier = this.#draw(() => fc.constantFrom('some', 'none', 'every'));
      return { [inverse.name]: { [quantifier]: inner(this.#relations.get(inverse.relation)) } };
    }
    const columns = relation.columns.filter(({ type }) => type.kind !== 'serial');
    const column = this.#draw(() => fc.constantFrom(...columns));
    return { [column.name]: this.#test(relation, column, hasClaims) };
  }

  #test({ name }: Relation, { name: column, type }: Column, hasClaims: boolean): unknown {
    if (type.kind === 'json') return null;
    const value = () => {
      const claim = hasClaims && this.#draw(() => fc.integer({ min: 0, max: 3 })) > 0;
      return claim
        ? { caller: `/${this.#draw(() => fc.constantFrom('', '', '', 'list-', 'object-'))}${name}-${column}` }
        : this.#draw(jsonOf, type);
    };
    const test = this.#draw(() =>
      fc.constantFrom(
        'value',
        'value',
        'ne',
        'lt',
        'gte',
        'in',
        'isNull',
        ...(type.kind === 'text' ? ['prefix', 'contains'] : []),
      ),
    );
    if (test === 'value') return value();
    if (test === 'isNull') return { isNull: this.#draw(() => fc.boolean()) };
    if (test === 'in') {
      const one = value();
      return { in: typeof one === 'object' ? one : [one, this.#draw(jsonOf, type)] };
    }
    return { [test]: value() };
  }
}

function shownValue({ name, type }: Column, row: ModelRow): unknown {
  const value = row[name] ?? null;
  return value === null ? null : JSON.parse(codecOf(type).format(value));
}

const shown = ({ columns }: Relation, row: ModelRow): Body =>
  Object.fromEntries(columns.map((column) => [column.name, shownValue(column, row)]));

/** A row as GraphQL shows it. */
function textOfId(relation: Relation, row: ModelRow): Body {
  return Object.fromEntries(
    relation.columns.map((column) => {
      const value = shownValue(column, row);
      return [column.name, value !== null && isId(relation, column) ? String(value) : value];
    }),
  );
}

function pathOf({ name, key, columns }: Relation, row: ModelRow): string {
  const parts = key.map((part) => {
    const column = columns.find((each) => each.name === part) as Column;
    return encodeURIComponent(codecOf(column.type).formatText(row[part] ?? ''));
  });
  return `/${name}/${parts.join()}`;
}

function keyOf(relation: Relation, row: ModelRow): Body {
  return Object.fromEntries(
    relation.columns
      .filter(({ name }) => relation.key.includes(name))
      .map((column) => [column.name, shownValue(column, row)]),
  );
}

class Comparison {
  readonly #model: Model;
  readonly #relations: readonly Relation[];
  readonly #rules: ReadonlyMap<string, Rules>;
  readonly #trees: Trees;
  readonly #draw: Draw;
  readonly #schema: GraphQLSchema;
  readonly #callers: Known[] = [];

  constructor(
    relations: readonly Relation[],
    rules: ReadonlyMap<string, Rules>,
    { trees, draw, schema }: { readonly trees: Trees; readonly draw: Draw; readonly schema: GraphQLSchema },
  ) {
    this.#schema = schema;
    this.#relations = relations;
    this.#rules = rules;
    this.#model = new Model(relations);
    this.#trees = trees;
    this.#draw = draw;
  }

  /** Adds a caller whose claims are values of rows, most of the time. */
  async add(open: (claims: Body) => Promise<Caller>, isRoot: boolean): Promise<void> {
    const claims: Record<string, unknown> = isRoot ? { scope: 'root' } : {};
    for (const relation of isRoot ? [] : this.#relations) {
      const values = (column: Column) =>
        Array.from({ length: 2 }, () => {
          const row = this.#any(relation);
          return row === undefined ? null : shownValue(column, row);
        });
      for (const column of relation.columns) {
        if (this.#draw(() => fc.integer({ min: 0, max: 5 })) === 0) continue;
        const [one, other] = values(column);
        claims[`${relation.name}-${column.name}`] = one;
        claims[`list-${relation.name}-${column.name}`] = [one, other];
        claims[`object-${relation.name}-${column.name}`] = { one };
      }
    }
    this.#callers.push({ caller: await open(claims), claims, isRoot });
  }

  addAnonymous(caller: Caller): void {
    this.#callers.push({ caller, claims: {}, isRoot: false });
  }

  get root(): Known {
    return this.#callers[0] as Known;
  }

  async run(steps: number): Promise<void> {
    for (let left = steps; left > 0; left--) {
      const known = this.#draw(() => fc.constantFrom(...this.#callers));
      const relation = this.#draw(() => fc.constantFrom(...this.#relations));
      const operation = this.#draw(() => fc.constantFrom('create', 'update', 'remove', 'list', 'list'));
      await this[operation](known, relation);
    }
  }

  #may(known: Known, operation: Operation, name: string, row: ModelRow): boolean {
    const tree = this.#rules.get(name)?.[operation] ?? {};
    return known.isRoot || this.#model.decides(name, row, tree, known.claims) === true;
  }

  async list(known: Known, relation: Relation): Promise<void> {
    const { name } = relation;
    const where = this.#trees.tree(relation, 2, false);
    const sees = (of: string, row: ModelRow) => this.#may(known, 'read', of, row);
    const expected = this.#model
      .list(name)
      .filter((row) => sees(name, row) && this.#model.holds(name, row, where, sees));
    const query = new URLSearchParams({ where: JSON.stringify(where), limit: '1000' });
    const reply = await known.caller.get(`/${name}?${query}`, { prefer: 'count=exact' });
    if (reply.status === 401 || reply.status === 403) {
      assert.deepEqual(
        this.#model.rows(name).filter((row) => sees(name, row)),
        [],
        reply.text,
      );
      return;
    }
    const context = inspect({ where, rules: this.#rules.get(name), claims: known.claims }, { depth: 12 });
    assert.deepEqual(
      reply.body,
      expected.map((row) => shown(relation, row)),
      context,
    );
    assert.equal(reply.headers.get('x-total-count'), String(expected.length));
    await this.#ask(known, relation, where, { expected, sees, context });
    for (const row of this.#model.rows(name).slice(0, 2)) {
      const single = await known.caller.get(pathOf(relation, row));
      assert.equal(single.status, sees(name, row) ? 200 : 404, `${single.text} ${context}`);
    }
  }

  /** Asks GraphQL for the same rows, with the keys of the rows to which they refer. */
  async #ask(
    { caller }: Known,
    relation: Relation,
    where: Tree,
    asked: {
      readonly expected: readonly ModelRow[];
      readonly sees: (of: string, row: ModelRow) => boolean;
      readonly context: string;
    },
  ): Promise<void> {
    const { name, references, columns } = relation;
    const target = (to: string) => this.#model.relation(to);
    // An operation is refused if one of its relations is none of the caller's.
    const reached = references.filter(({ to }) => this.#model.rows(to).some((row) => asked.sees(to, row)));
    const fields = [
      ...columns.map((column) => column.name),
      ...reached.map((each) => `${each.name} { ${target(each.to).key.join(' ')} }`),
    ];
    const query = `query ($where: ${typeNameOf(relation)}Where) {
      rows: ${name}(where: $where, limit: 1000) { ${fields.join(' ')} }
      page: ${name}Connection(where: $where, first: 1) { totalCount }
    }`;
    const { body, text } = await caller.ask(query, { where: this.#inputOf(relation, where) });
    // It has fewer tests of bytes, booleans and enums.
    if (text.includes('not to include unknown field')) return;
    const keyOf = (of: Relation, row: ModelRow) =>
      Object.fromEntries(of.key.map((column) => [column, textOfId(of, row)[column]]));
    const rows = asked.expected.map((row) => {
      const referred = this.#model.referred(name, row);
      const found = reached.map((each) => {
        const row = referred.find(({ reference }) => reference.name === each.name)?.found;
        const isSeen = row !== undefined && asked.sees(each.to, row);
        return [each.name, isSeen ? keyOf(target(each.to), row) : null] as const;
      });
      return { ...textOfId(relation, row), ...Object.fromEntries(found) };
    });
    assert.deepEqual(body, { data: { rows, page: { totalCount: rows.length } } }, `${text} ${asked.context}`);
  }

  /** A tree of conditions as GraphQL takes it. */
  #inputOf(relation: Relation, tree: Tree): Body {
    const inner = (each: unknown, of = relation) => this.#inputOf(of, each as Tree);
    return Object.fromEntries(
      Object.entries(tree).map(([name, given]) => {
        if (name === 'not') return [name, inner(given)];
        if (name === 'and' || name === 'or')
          return [name, (given as readonly unknown[]).map((each) => inner(each))];
        const reference = relation.references.find((each) => each.name === name);
        if (reference !== undefined) return [name, inner(given, this.#model.relation(reference.to))];
        const inverse = relation.inverses.find((each) => each.name === name);
        if (inverse !== undefined) {
          const [[quantifier = '', within] = []] = Object.entries(given as Tree);
          return [name, { [quantifier]: inner(within, this.#model.relation(inverse.relation)) }];
        }
        if (given === null) return [name, { isNull: true }];
        return [name, typeof given === 'object' ? given : { eq: given }];
      }),
    );
  }

  async create(known: Known, relation: Relation): Promise<void> {
    const { name } = relation;
    const body = this.#withReferences(relation, this.#draw(bodies, relation));
    const rows = this.#model.rows(name);
    const row = this.#model.rowOf(name, body, 1_000_000 + rows.length);
    rows.push(row);
    const isAllowed = this.#may(known, 'create', name, row);
    const isHidden = this.#isHidden(known, name, row);
    rows.pop();
    // Why a row is refused is asked without it, and rules may depend on whether it is there.
    const isSame =
      this.#may(known, 'create', name, row) === isAllowed && this.#isHidden(known, name, row) === isHidden;
    const conflict = isSame ? [409] : [403, 409];
    const refusal = isSame ? [401, 403] : [401, 403, 409];
    const reply = await known.caller.send('POST', `/${name}`, body);
    const serial = relation.columns.find(({ type }) => type.kind === 'serial');
    const key = decodeURIComponent(reply.headers.get('location')?.split('/').at(-1) ?? '');
    const given = serial === undefined || reply.status !== 201 ? undefined : Number(key);
    if (!isAllowed) return this.#refused(reply, refusal, { known, relation, body });
    if (isHidden) return this.#refused(reply, conflict, { known, relation, body });
    const outcome = this.#model.create(name, body, given);
    if (outcome.is === 'refused') return this.#refused(reply, conflict, { known, relation, body });
    assert.equal(reply.status, 201, reply.text);
  }

  async update(known: Known, relation: Relation): Promise<void> {
    const { name } = relation;
    const row = this.#any(relation);
    if (row === undefined) return;
    const whole = this.#withReferences(relation, this.#draw(bodies, relation));
    const names = this.#draw(() => fc.subarray(Object.keys(whole)));
    const body = Object.fromEntries(
      names.filter((each) => !relation.key.includes(each)).map((each) => [each, whole[each]]),
    );
    const context = { known, relation, body, row };
    const mayRead = this.#may(known, 'read', name, row);
    const mayUpdate = this.#may(known, 'update', name, row);
    const isSeen = this.#referencesSeen(known, name, { ...row, ...this.#parsed(relation, body) }, row);
    const mutations = this.#mutationsOf(known);
    const reply = await (mutations === undefined
      ? known.caller.send('PATCH', pathOf(relation, row), body)
      : mutations.update(relation, keyOf(relation, row), body));
    // A caller that may update no row at all is refused before.
    if (reply.status === 401 || (reply.status === 403 && !mayUpdate)) return;
    if (!mayRead) return this.#refused(reply, [404], context);
    if (!mayUpdate) return this.#refused(reply, [403], context);
    const rows = this.#model.rows(name);
    const after = this.#model.computed(name, { ...row, ...this.#parsed(relation, body) });
    const at = rows.indexOf(row);
    rows[at] = after;
    const mayBe = this.#may(known, 'update', name, after);
    rows[at] = row;
    const conflict = this.#may(known, 'update', name, after) ? [409] : [403, 409];
    if (!mayBe) return this.#refused(reply, isSeen ? [403] : [403, 409], context);
    if (!isSeen) return this.#refused(reply, [409, 403], context);
    const outcome = this.#model.update(name, row, body);
    if (outcome.is === 'refused') return this.#refused(reply, conflict, context);
    assert.ok(
      reply.status === 200 || reply.status === 204,
      `${reply.text} ${inspect(context, { depth: 9 })}`,
    );
    if (mutations === undefined && reply.status === 200 && outcome.is === 'done')
      assert.ok(this.#may(known, 'read', name, outcome.row), 'the reply shows what may be read');
  }

  async remove(known: Known, relation: Relation): Promise<void> {
    const { name } = relation;
    const row = this.#any(relation);
    if (row === undefined || this.#model.isEntangled(name, row)) return;
    const mayRead = this.#may(known, 'read', name, row);
    const mayDelete = this.#may(known, 'delete', name, row);
    const mutations = this.#mutationsOf(known);
    const reply = await (mutations === undefined
      ? known.caller.send('DELETE', pathOf(relation, row))
      : mutations.remove(relation, keyOf(relation, row)));
    if (reply.status === 401 || (reply.status === 403 && !mayDelete)) return;
    const context = { known, relation, row };
    if (!mayRead) return this.#refused(reply, [404], context);
    if (!mayDelete) return this.#refused(reply, [403], context);
    if (this.#model.remove(name, row).is === 'refused') return this.#refused(reply, [409], context);
    assert.equal(reply.status, 204, reply.text);
  }

  /** Half of the writes are mutations, which return nothing of the row. */
  #mutationsOf({ caller }: Known): GraphqlWrites | undefined {
    if (this.#draw(() => fc.boolean())) return undefined;
    return new GraphqlWrites(this.#schema, (query, variables) => caller.ask(query, variables), false);
  }

  #refused(
    reply: { readonly status: number; readonly text: string },
    statuses: readonly number[],
    {
      known,
      ...context
    }: {
      readonly known: Known;
      readonly relation: Relation;
      readonly body?: Body;
      readonly row?: ModelRow;
    },
  ): void {
    const rules = this.#rules.get(context.relation.name);
    const about = inspect({ claims: known.claims, rules, ...context }, { depth: 12 });
    assert.ok(
      statuses.includes(reply.status),
      `${reply.status} instead of ${statuses}: ${reply.text} ${about}`,
    );
  }

  /** Whether a reference of a new row leads to a row that the caller may not read. */
  #isHidden(known: Known, name: string, row: ModelRow): boolean {
    return this.#model
      .referred(name, row)
      .some(({ reference, found }) => found !== undefined && !this.#may(known, 'read', reference.to, found));
  }

  #referencesSeen(known: Known, name: string, row: ModelRow, before: ModelRow): boolean {
    return this.#model
      .referred(name, row)
      .every(
        ({ reference, found }) =>
          found === undefined ||
          reference.columns.every((column) => row[column] === before[column]) ||
          this.#may(known, 'read', reference.to, found),
      );
  }

  #parsed({ columns }: Relation, body: Body): ModelRow {
    return Object.fromEntries(
      Object.entries(body).map(([name, given]) => {
        const column = columns.find((each) => each.name === name) as Column;
        const parsed = given === null ? { value: null } : codecOf(column.type).parse(given);
        assert.ok('value' in parsed);
        return [name, parsed.value];
      }),
    );
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
        if (own.nullable && (choice < 3 || row === undefined)) filled[name] = null;
        else
          filled[name] =
            row === undefined || choice === 9 ? this.#draw(jsonOf, own.type) : shownValue(other, row);
      }
    }
    return filled;
  }
}

for (const { engine, open } of ruledDoors) {
  test(`random rules let random callers do on ${engine} what they let them do on arrays`, async () => {
    await fc.assert(
      fc.asyncProperty(declarations, fc.gen(), async ({ relations }, draw) => {
        const trees = new Trees(relations, draw);
        const rules = new Map(
          relations.map((relation) => {
            const own = OPERATIONS.map((operation) => [operation, trees.tree(relation, 3, true)] as const);
            return [relation.name, Object.fromEntries(own) as unknown as Rules];
          }),
        );
        const ruled = relations.map((relation): Relation => {
          const own = rules.get(relation.name) as Rules;
          const grants = OPERATIONS.map((each) => [each, [{ scope: 'root' }, { where: own[each] }]] as const);
          return {
            ...relation,
            rules: Object.fromEntries(grants) as unknown as NonNullable<Relation['rules']>,
          };
        });
        await using door = await open(ruled);
        const { schema } = door.door;
        assert.ok(schema !== undefined);
        const comparison = new Comparison(relations, rules, { trees, draw, schema });
        await comparison.add((claims) => door.caller('root', claims), true);
        for (let left = 12; left > 0; left--) {
          for (const relation of relations) await comparison.create(comparison.root, relation);
        }
        comparison.addAnonymous(door.anonymous);
        for (const name of ['one', 'two']) await comparison.add((claims) => door.caller(name, claims), false);
        await comparison.run(STEPS);
      }),
      { numRuns: RUNS[engine] ?? 1, endOnFailure: true },
    );
  });
}
