import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { codecOf } from '../../src/relations/codecs.ts';
import type { Column, Relation } from '../../src/relations/relation.ts';
import { takes } from '../../src/relations/selections/aggregates.ts';
import { ask } from '../graphql/support/door.ts';
import { rounds } from '../support/proof-settings.ts';
import { GraphqlWrites } from '../support/relations/graphql-writes.ts';
import {
  type Body,
  Model,
  type ModelRow,
  type ModelSelection,
  type Outcome,
  shownValue,
  type Tree,
} from '../support/relations/model.ts';
import { jsonOf } from '../support/relations/random-columns.ts';
import { bodies, declarations, declarationsWithUsers } from '../support/relations/random-declarations.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { usersAsRows } from '../support/relations/users-door.ts';

const RUNS: Readonly<Record<string, number>> = { sqlite: rounds(12), postgres: rounds(6) };
const STEPS = 50;
const CODES = { taken: 'TAKEN', missing: 'REFERENCE_MISSING', referenced: 'REFERENCED' } as const;

type Draw = fc.GeneratorValue;

/** A refusal. */
interface Problem {
  readonly code: string;
  readonly errors: readonly { readonly pointer: string }[];
}

/** A row of the model as a client gets it. */
function shown({ columns }: Relation, row: ModelRow): Body {
  return Object.fromEntries(columns.map((column) => [column.name, shownValue(column, row)]));
}

function pathOf({ name, key, columns }: Relation, row: ModelRow): string {
  const parts = key.map((part) => {
    const column = columns.find((each) => each.name === part);
    const value = row[part] ?? null;
    assert.ok(column !== undefined && value !== null);
    return encodeURIComponent(codecOf(column.type).formatText(value));
  });
  return `/${name}/${parts.join()}`;
}

/** Random operations on a door and on the model, which have to agree. */
class Comparison {
  readonly #door: RelationDoor;
  readonly #model: Model;
  readonly #relations: readonly Relation[];
  readonly #draw: Draw;
  /** Writes by GraphQL, if the door has it. */
  readonly #mutations: GraphqlWrites | undefined;
  #fake = 0;

  constructor(door: RelationDoor, relations: readonly Relation[], draw: Draw) {
    this.#door = door;
    this.#mutations =
      door.schema &&
      new GraphqlWrites(door.schema, (query, variables) => ask(door.graphql, { query, variables }));
    this.#relations = relations;
    this.#model = new Model(relations);
    this.#draw = draw;
  }

  async run(): Promise<void> {
    for (let left = STEPS; left > 0; left--) {
      const relation = this.#draw(() => fc.constantFrom(...this.#relations));
      const operation = this.#draw(() =>
        fc.constantFrom('create', 'create', 'update', 'remove', 'list', 'embed', 'aggregate'),
      );
      const isWrite = ['create', 'update', 'remove'].includes(operation);
      if (isWrite && this.#mutations !== undefined && this.#draw(() => fc.boolean()))
        await this.#mutate(relation, this.#mutations);
      else await this[`#${operation}` as '#create'](relation);
    }
    for (const relation of this.#relations) {
      const rows = this.#model.list(relation.name);
      await this.#compareList(relation, {}, [], 1_000, rows);
      for (const row of rows.slice(0, 3)) {
        const found = await this.#door.get(pathOf(relation, row));
        assert.deepEqual([found.status, found.body], [200, shown(relation, row)]);
      }
    }
  }

  async '#create'(relation: Relation): Promise<void> {
    const body = this.#withReferences(relation, this.#draw(bodies, relation));
    const serial = relation.columns.find(({ type }) => type.kind === 'serial');
    const reply = await this.#door.send('POST', `/${relation.name}`, body);
    const given = serial === undefined || reply.status !== 201 ? undefined : reply.body[serial.name];
    this.#agree(relation, reply, 201, this.#model.create(relation.name, body, given), body);
  }

  async '#update'(relation: Relation): Promise<void> {
    const row = this.#any(relation);
    if (row === undefined) return;
    const whole = this.#withReferences(relation, this.#draw(bodies, relation));
    const names = this.#draw(() => fc.subarray(Object.keys(whole), { minLength: 0 }));
    const body = Object.fromEntries(
      names.filter((name) => !relation.key.includes(name)).map((name) => [name, whole[name]]),
    );
    const reply = await this.#door.send('PATCH', pathOf(relation, row), body);
    this.#agree(relation, reply, 200, this.#model.update(relation.name, row, body), body);
  }

  async '#remove'(relation: Relation): Promise<void> {
    const row = this.#any(relation);
    if (row === undefined || this.#model.isEntangled(relation.name, row)) return;
    const path = pathOf(relation, row);
    const reply = await this.#door.send('DELETE', path);
    const outcome = this.#model.remove(relation.name, row);
    if (outcome.is === 'done') assert.equal(reply.status, 204, reply.text);
    else this.#agree(relation, reply, 204, outcome, path);
    assert.equal((await this.#door.get(path)).status, outcome.is === 'done' ? 404 : 200);
  }

  async #mutate(relation: Relation, mutations: GraphqlWrites): Promise<void> {
    const { name } = relation;
    const row = this.#any(relation);
    const kinds = [
      'create',
      'createAll',
      'nested',
      'upsert',
      ...(row === undefined ? [] : ['update', 'remove']),
    ];
    const kind = this.#draw(() => fc.constantFrom(...kinds));
    const body = () => this.#withReferences(relation, this.#draw(bodies, relation));
    if (kind === 'create') {
      const one = body();
      const reply = await mutations.create(relation, one);
      return this.#agree(relation, reply, 201, this.#created(relation, one, reply.body), one);
    }
    if (kind === 'createAll') {
      const all = [body(), body()];
      const reply = await mutations.createAll(relation, all);
      const created = (nth: number) => (Array.isArray(reply.body) ? reply.body[nth] : undefined);
      const outcomes = all.map((one, nth) => this.#created(relation, one, created(nth)));
      const isDone = outcomes.every(({ is }) => is === 'done');
      for (const { is } of outcomes) if (is === 'done' && !isDone) this.#model.rows(name).pop();
      for (const [nth, outcome] of outcomes.entries()) {
        if (isDone) this.#agree(relation, { ...reply, body: created(nth) }, 201, outcome, all);
      }
      return isDone ? undefined : this.#refused(reply, outcomes, all);
    }
    if (kind === 'nested') return this.#nest(relation, mutations, body());
    if (kind === 'upsert') {
      const one = body();
      const isWhole = relation.key.every((column) => one[column] !== undefined && one[column] !== null);
      if (!isWhole) return;
      const there = this.#model.read(name, this.#parsed(relation, one));
      const reply = await mutations.upsert(relation, one);
      const outcome =
        there === undefined ? this.#created(relation, one, reply.body) : this.#model.update(name, there, one);
      return this.#agree(relation, reply, 200, outcome, one);
    }
    if (row === undefined) return;
    const key = Object.fromEntries(relation.key.map((column) => [column, shown(relation, row)[column]]));
    const version = await mutations.versionOf(relation, key);
    const given = this.#draw(() => fc.constantFrom(undefined, version, version - 1));
    const isStale = given !== undefined && given !== version;
    if (kind === 'remove') {
      if (this.#model.isEntangled(name, row)) return;
      const reply = await mutations.remove(relation, key, given);
      if (isStale) return assert.equal(reply.status, 412, reply.text);
      const outcome = this.#model.remove(name, row);
      if (outcome.is === 'done') assert.equal(reply.status, 204, reply.text);
      else this.#agree(relation, reply, 204, outcome, key);
      return;
    }
    const whole = body();
    const names = this.#draw(() => fc.subarray(Object.keys(whole)));
    const changes = Object.fromEntries(
      names.filter((each) => !relation.key.includes(each)).map((each) => [each, whole[each]]),
    );
    const reply = await mutations.update(relation, key, changes, given);
    if (isStale) return assert.equal(reply.status, 412, reply.text);
    this.#agree(relation, reply, 200, this.#model.update(name, row, changes), changes);
  }

  /** Creates a row with the row of a reference within it. */
  async #nest(relation: Relation, mutations: GraphqlWrites, body: Body): Promise<void> {
    const reference = relation.references.find(({ to }) => to !== relation.name && to !== 'users');
    if (reference === undefined) return;
    const target = this.#model.relation(reference.to);
    const inner = this.#withReferences(target, this.#draw(bodies, target));
    const own = Object.fromEntries(
      Object.entries(body).filter(([name]) => !reference.columns.includes(name)),
    );
    // A column that another reference shares is part of both keys.
    if (relation.references.some((each) => each !== reference && each.columns.some((name) => !(name in own))))
      return;
    const nested = `${reference.name} { ${target.key.join(' ')} }`;
    const written = { ...own, [reference.name]: inner };
    const reply = await mutations.create(relation, written, nested);
    const { [reference.name]: found, ...stored } = reply.status === 201 ? reply.body : {};
    const serial = target.columns.find(({ type }) => type.kind === 'serial')?.name ?? '';
    const given = found === undefined ? undefined : { [serial]: Number(found[serial]) };
    const first = this.#created(target, inner, given);
    if (first.is !== 'done') return this.#refused(reply, [first], written);
    const to = shown(target, first.row);
    const links = reference.columns.map((name, i) => [name, to[reference.targetColumns[i] ?? '']]);
    const outcome = this.#created(relation, { ...own, ...Object.fromEntries(links) }, stored);
    if (outcome.is === 'done')
      return this.#agree(relation, { ...reply, body: stored }, 201, outcome, written);
    this.#model.rows(target.name).pop();
    this.#refused(reply, [outcome], written);
  }

  /** Creates a row of the model with the number that a reply has, or with one that no row gets. */
  #created(relation: Relation, body: Body, stored: Body | undefined): Outcome {
    const serial = relation.columns.find(({ type }) => type.kind === 'serial');
    const given = serial === undefined ? undefined : stored?.[serial.name];
    return this.#model.create(relation.name, body, typeof given === 'number' ? given : --this.#fake);
  }

  /** Whether writes are refused together for what one of them meets. */
  #refused(
    reply: { readonly status: number; readonly text: string; readonly body: unknown },
    outcomes: readonly Outcome[],
    written: unknown,
  ): void {
    const codes = outcomes.flatMap((each) =>
      each.is === 'refused' ? each.conflicts.map(({ is }): string => CODES[is]) : [],
    );
    const context = `${reply.status} ${reply.text} ${inspect({ written, outcomes }, { depth: 6 })}`;
    assert.equal(reply.status, 409, context);
    assert.ok(codes.includes((reply.body as Problem).code), context);
  }

  #parsed({ columns }: Relation, body: Body): ModelRow {
    return Object.fromEntries(
      columns.flatMap(({ name, type }) => {
        const parsed =
          body[name] === undefined || body[name] === null ? undefined : codecOf(type).parse(body[name]);
        return parsed !== undefined && 'value' in parsed ? [[name, parsed.value]] : [];
      }),
    );
  }

  async '#list'(relation: Relation): Promise<void> {
    const where = this.#tree(relation, 3);
    const sort = this.#sort(relation);
    const limit = this.#draw(() => fc.integer({ min: 1, max: 5 }));
    await this.#compareList(relation, where, sort, limit, this.#model.list(relation.name, { where, sort }));
  }

  #sort(relation: Relation): readonly string[] {
    const sortable = relation.columns
      .filter(({ type }) => type.kind !== 'json' && type.kind !== 'bytes')
      .map(({ name }) => name);
    const signs = this.#draw(() => fc.array(fc.boolean(), { minLength: 2, maxLength: 2 }));
    return this.#draw(() => fc.subarray(sortable, { maxLength: Math.min(2, sortable.length) })).map(
      (name, i) => `${signs[i] ? '-' : ''}${name}`,
    );
  }

  async '#embed'(relation: Relation): Promise<void> {
    const parameters: [string, string][] = [];
    const [selection, fields] = this.#selection(relation, 'embed', parameters, 3);
    const query = new URLSearchParams([['fields', fields], ...parameters]);
    const rows = this.#model.list(relation.name).slice(0, 100);
    const reply = await this.#door.get(`/${relation.name}?${query}`);
    const expected = rows.map((row) => this.#model.show(relation.name, row, selection));
    const context = () =>
      `${reply.text} ${inspect({ relation: relation.name, fields, parameters }, { depth: 6 })}`;
    assert.equal(reply.status, 200, context());
    assert.deepEqual(reply.body, expected, context());
    const [row] = rows;
    if (row === undefined || relation.name === 'users') return;
    const one = await this.#door.get(`${pathOf(relation, row)}?${query}`);
    assert.deepEqual([one.status, one.body], [200, expected[0]], context());
  }

  /** A random selection, with the text and the parameters that ask for it. */
  #selection(
    { name, columns, references, inverses, many }: Relation,
    path: string,
    parameters: [string, string][],
    depth: number,
  ): readonly [ModelSelection, string] {
    const names = columns.map((column) => column.name);
    const shown = this.#draw(() => fc.subarray(names, { minLength: 1 }));
    const links = depth === 0 ? [] : [...references, ...inverses, ...many].map((each) => each.name);
    const embedded = this.#draw(() => fc.subarray(links, { maxLength: Math.min(2, links.length) }));
    const parts = embedded.map((link) => {
      const target = this.#targetOf(name, link);
      const own = `${path}.${link}`;
      const [selection, text] = this.#selection(target, own, parameters, depth - 1);
      const where = this.#tree(target, 1);
      if (Object.keys(where).length > 0) parameters.push([`${own}.where`, JSON.stringify(where)]);
      const isOne = references.some((each) => each.name === link);
      const sort = isOne ? [] : this.#sort(target);
      const limit = isOne
        ? undefined
        : this.#draw(() => fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }));
      if (sort.length > 0) parameters.push([`${own}.sort`, sort.join()]);
      if (limit !== undefined) parameters.push([`${own}.limit`, String(limit)]);
      return {
        link,
        text: `${link}(${text})`,
        embed: { ...selection, where, sort, ...(limit !== undefined && { limit }) },
      };
    });
    const embeds = Object.fromEntries(parts.map(({ link, embed }) => [link, embed]));
    return [{ columns: shown, embeds }, [...shown, ...parts.map(({ text }) => text)].join()];
  }

  /** The relation behind a reference, an inverse or a many-to-many. */
  #targetOf(name: string, link: string): Relation {
    const { references, inverses, many } = this.#model.relation(name);
    const connected = many.find((each) => each.name === link);
    if (connected !== undefined) return this.#targetOf(connected.through, connected.other);
    const reference = references.find((each) => each.name === link);
    const inverse = inverses.find((each) => each.name === link);
    return this.#model.relation(reference?.to ?? inverse?.relation ?? '');
  }

  async '#aggregate'(relation: Relation): Promise<void> {
    if (relation.name === 'users') return;
    const where = this.#tree(relation, 2);
    const names = relation.columns.filter(({ type }) => type.kind !== 'json').map((column) => column.name);
    const group = this.#draw(() => fc.subarray(names, { maxLength: Math.min(2, names.length) }));
    // The sums of doubles depend on their order.
    const all = ['countDistinct', 'sum', 'avg', 'min', 'max'].flatMap((is) =>
      relation.columns
        .filter(({ type: { kind } }) => takes(is as 'sum', kind) && (kind !== 'number' || is.startsWith('m')))
        .map(({ name }) => [is, name] as const),
    );
    const aggregates = [
      ['count', ''] as const,
      ...this.#draw(() => fc.subarray(all, { maxLength: Math.min(4, all.length) })),
    ];
    const asked = aggregates.map(([is, column]) => (is === 'count' ? is : `${is}(${column})`)).join();
    const query = new URLSearchParams({ aggregate: asked, where: JSON.stringify(where) });
    if (group.length > 0) query.set('group', group.join());
    const reply = await this.#door.get(`/${relation.name}?${query}`);
    const expected = this.#model.aggregate(relation.name, where, group, aggregates);
    const context = () => `${reply.text} ${inspect({ where, group, asked, expected }, { depth: 6 })}`;
    if (reply.status === 400 && / \(sum\)/.test(reply.text)) return;
    assert.equal(reply.status, 200, context());
    assert.deepEqual(reply.body, expected, context());
  }

  /** Reads all pages forwards, then back. */
  async #compareList(
    relation: Relation,
    where: Tree,
    sort: readonly string[],
    limit: number,
    rows: readonly ModelRow[],
  ): Promise<void> {
    const expected = rows.map((row) => shown(relation, row));
    const query = new URLSearchParams({ where: JSON.stringify(where), limit: String(limit) });
    if (sort.length > 0) query.set('sort', sort.join());
    let path: string | undefined = `/${relation.name}?${query}`;
    const pages: unknown[][] = [];
    let last: string | undefined;
    const context = () => inspect({ where, sort, limit, expected, pages }, { depth: 9 });
    while (path !== undefined) {
      const reply = await this.#door.get(path, { prefer: 'count=exact' });
      assert.equal(reply.status, 200, `${reply.text} ${context()}`);
      assert.equal(reply.headers.get('x-total-count'), String(rows.length), context());
      pages.push(reply.body);
      last = reply.links.prev ?? last;
      path = reply.links.next;
      if (path === undefined) last = reply.links.prev;
      assert.ok(pages.length <= rows.length + 1, context());
    }
    assert.deepEqual(pages.flat(), expected, context());
    const back: unknown[][] = [];
    while (last !== undefined) {
      const reply = await this.#door.get(last);
      assert.equal(reply.status, 200, reply.text);
      back.unshift(reply.body);
      last = reply.links.prev;
      assert.ok(back.length <= rows.length + 1);
    }
    assert.deepEqual(back.flat(), expected.slice(0, back.flat().length), `backwards ${context()}`);
    if (pages.length > 1) assert.equal(back.flat().length, expected.length - (pages.at(-1)?.length ?? 0));
  }

  #agree(
    relation: Relation,
    reply: { readonly status: number; readonly text: string; readonly body: unknown },
    status: number,
    outcome: Outcome,
    written: unknown,
  ): void {
    const context = `${reply.status} ${reply.text} ${inspect({ relation: relation.name, written, outcome }, { depth: 6 })}`;
    if (outcome.is === 'absent') assert.equal(reply.status, 404, context);
    if (outcome.is === 'done') {
      assert.equal(reply.status, status, context);
      assert.deepEqual(reply.body, shown(relation, outcome.row), context);
    }
    if (outcome.is === 'refused') {
      assert.equal(reply.status, 409, context);
      const { code, errors } = reply.body as Problem;
      const codes = outcome.conflicts.map(({ is }) => CODES[is]);
      assert.ok(
        codes.some((each) => each === code),
        context,
      );
      // Each column of each conflict is named; a referenced row is at fault as a whole.
      const columns = outcome.conflicts.flatMap((conflict) => {
        if (conflict.is === 'taken') return conflict.columns;
        if (conflict.is === 'referenced') return [];
        return relation.references.find(({ name }) => name === conflict.reference)?.columns ?? [];
      });
      const named = new Set(errors.map(({ pointer }) => pointer).filter((pointer) => pointer !== '#'));
      for (const column of new Set(columns)) assert.ok(named.delete(`#/${column}`), context);
      // A row that refers to itself is not there to be found, as something else refuses it.
      const own = relation.references
        .filter(({ to }) => to === relation.name)
        .flatMap((each) => each.columns);
      for (const column of own) named.delete(`#/${column}`);
      assert.deepEqual([...named], [], context);
    }
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

  /** A random tree of conditions. */
  #tree(relation: Relation, depth: number): Tree {
    const count = this.#draw(() => fc.nat({ max: 2 }));
    return Object.assign({}, ...Array.from({ length: count }, () => this.#condition(relation, depth)));
  }

  #condition(relation: Relation, depth: number): Tree {
    const kinds = [
      'column',
      'column',
      'column',
      ...(depth > 0 ? ['and', 'or', 'not', 'reference', 'inverse'] : []),
    ];
    const kind = this.#draw(() => fc.constantFrom(...kinds));
    const inner = () => this.#tree(relation, depth - 1);
    if (kind === 'not') return { not: inner() };
    if (kind === 'and' || kind === 'or') return { [kind]: [inner(), inner()] };
    const [reference] = relation.references;
    if (kind === 'reference' && reference !== undefined)
      return { [reference.name]: this.#tree(this.#model.relation(reference.to), depth - 1) };
    const inverses = [...relation.inverses, ...relation.many];
    if (kind === 'inverse' && inverses.length > 0) {
      const { name } = this.#draw(() => fc.constantFrom(...inverses));
      const quantifier = this.#draw(() => fc.constantFrom('some', 'none', 'every'));
      return { [name]: { [quantifier]: this.#tree(this.#targetOf(relation.name, name), depth - 1) } };
    }
    const column = this.#draw(() => fc.constantFrom(...relation.columns));
    return { [column.name]: this.#test(relation, column) };
  }

  #test(relation: Relation, column: Column): unknown {
    if (column.type.kind === 'json') return null;
    const value = () => {
      const row = this.#any(relation);
      const known = row === undefined || this.#draw(() => fc.boolean()) ? null : shownValue(column, row);
      return known ?? this.#draw(jsonOf, column.type);
    };
    const tests = ['value', 'eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in', 'isNull', 'null'];
    const test = this.#draw(() =>
      fc.constantFrom(...tests, ...(column.type.kind === 'text' ? ['prefix', 'contains'] : [])),
    );
    switch (test) {
      case 'value':
        return value();
      case 'null':
        return null;
      case 'isNull':
        return { isNull: this.#draw(() => fc.boolean()) };
      case 'in':
        return { in: [value(), value()] };
      case 'prefix':
      case 'contains': {
        const text = String(value());
        const [from, to] = this.#draw(() => fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 3 })));
        const characters = [...text].slice(test === 'prefix' ? 0 : from, from + to);
        return { [test]: characters.join('') };
      }
      default:
        return { [test]: value() };
    }
  }
}

for (const [engine, open] of Object.entries(relationDoors)) {
  test(`random operations on random relations do on ${engine} what they do on arrays`, async () => {
    await fc.assert(
      fc.asyncProperty(declarations, fc.gen(), async ({ relations }, draw) => {
        await using door = await open(relations, { graphql: true });
        await new Comparison(door, relations, draw).run();
      }),
      {
        numRuns: RUNS[engine] ?? 1,
        endOnFailure: true,
      },
    );
  });

  test(`random operations with users on ${engine} do what they do on arrays`, async () => {
    await fc.assert(
      fc.asyncProperty(
        declarationsWithUsers,
        fc.boolean(),
        fc.gen(),
        async ({ relations }, isStandard, draw) => {
          const users = relations.find(({ name }) => name === 'users');
          assert.ok(users !== undefined);
          if (isStandard) {
            const served = relations.map((each) => (each === users ? { ...users, shown: undefined } : each));
            await using door = await open(served, { isMigrated: true, userPaths: 'standard' });
            await new Comparison(door, served, draw).run();
            return;
          }
          await using door = await open(relations, { isMigrated: true });
          await new Comparison(usersAsRows(door, users), relations, draw).run();
        },
      ),
      { numRuns: RUNS[engine] ?? 1, endOnFailure: true },
    );
  });
}
