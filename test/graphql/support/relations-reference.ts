import {
  buildSchema,
  type ExecutionResult,
  execute,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  parse,
  printSchema,
} from 'graphql';
import { withNumbers } from '../../../src/graphql/relations/selections.ts';
import { isId } from '../../../src/graphql/relations/types.ts';
import { codecOf } from '../../../src/relations/codecs.ts';
import type { Column, Relation } from '../../../src/relations/relation.ts';
import { takes } from '../../../src/relations/selections/aggregates.ts';
import type { Model, ModelList, ModelRow, Tree } from '../../support/relations/model.ts';

/** A row as a client gets it, without the rows of others. */
export function shownRow({ key, columns }: Relation, row: ModelRow): Record<string, unknown> {
  return Object.fromEntries(
    columns.map((column) => {
      const value = shownValue(column, row);
      return [column.name, isId({ key }, column) ? String(value) : value];
    }),
  );
}

export function shownValue({ name, type }: Column, row: ModelRow): unknown {
  const value = row[name] ?? null;
  return value === null ? null : JSON.parse(codecOf(type).format(value));
}

interface ListInput {
  readonly where?: Tree | null;
  readonly orderBy?: readonly Readonly<Record<string, unknown>>[] | null;
  readonly limit?: number | null;
}

interface AggregateInput {
  readonly where?: Tree | null;
  readonly groupBy?: readonly string[] | null;
}

/** The functions of the columns of a relation whose results do not depend on the order of rows. */
export function comparableAggregates({
  columns,
}: Relation): readonly (readonly [is: string, column: string])[] {
  const functions = ['countDistinct', 'sum', 'avg', 'min', 'max'] as const;
  return functions.flatMap((is) =>
    columns
      .filter(({ name, type }) => name !== 'id' && takes(is, type.kind))
      .filter(({ type }) => type.kind !== 'number' || is === 'min' || is === 'max')
      .map(({ name }) => [is, name] as const),
  );
}

function listOf({ where, orderBy, limit }: ListInput): ModelList {
  const term = (given: unknown, path: readonly string[] = []): string => {
    if (typeof given === 'string') return `${given === 'DESC' ? '-' : ''}${path.join('.')}`;
    const [[name, inner] = ['', undefined]] = Object.entries(given as object);
    return term(inner, [...path, name]);
  };
  return {
    where: where ?? {},
    sort: (orderBy ?? []).map((each) => term(each)),
    ...(limit == null ? {} : { limit }),
  };
}

/**
 * Executes documents with GraphQL.js over plain resolvers and arrays: the results that a door must give for the same
 * schema.
 */
export class ReferenceDoor {
  readonly #schema: GraphQLSchema;
  readonly #model: Model;
  readonly #relations: readonly Relation[];

  constructor(schema: GraphQLSchema, relations: readonly Relation[], model: Model) {
    this.#schema = buildSchema(printSchema(schema));
    this.#relations = relations;
    this.#model = model;
  }

  async query(query: string, variableValues: Readonly<Record<string, unknown>>): Promise<ExecutionResult> {
    const rootValue = Object.fromEntries(
      this.#relations.flatMap((relation) => [
        [relation.name, (given: ListInput) => this.#list(relation, listOf(given))],
        [relation.one, (given: Readonly<Record<string, unknown>>) => this.#byKey(relation, given)],
        [`${relation.name}Aggregate`, (given: AggregateInput) => this.#groups(relation, given)],
      ]),
    );
    return await execute({ schema: this.#schema, document: parse(query), rootValue, variableValues });
  }

  #list(relation: Relation, list: ModelList): readonly unknown[] {
    return this.#rows(relation, list).map((row) => this.#object(relation, row));
  }

  #rows(relation: Relation, list: ModelList): readonly ModelRow[] {
    const all = new Map(this.#relations.map((each) => [each.name, each]));
    const where = withNumbers(all, relation, list.where) as Tree;
    return this.#model.list(relation.name, { ...list, where });
  }

  /** The groups with all aggregates that documents may select. */
  #groups(relation: Relation, { where, groupBy }: AggregateInput): readonly unknown[] {
    const all = new Map(this.#relations.map((each) => [each.name, each]));
    const tree = withNumbers(all, relation, where ?? {}) as Tree;
    const group = groupBy ?? [];
    const aggregates = [['count', ''] as const, ...comparableAggregates(relation)];
    return this.#model.aggregate(relation.name, tree, group, aggregates).map((found) => ({
      ...found,
      group: Object.fromEntries(group.map((name) => [name, found[name]])),
    }));
  }

  #byKey(relation: Relation, given: Readonly<Record<string, unknown>>): unknown {
    const where = Object.fromEntries(relation.key.map((name) => [name, { eq: given[name] }]));
    return this.#list(relation, { where })[0] ?? null;
  }

  /** A row whose fields are properties and methods. */
  #object(relation: Relation, row: ModelRow): Readonly<Record<string, unknown>> {
    const value = (name: string) => {
      const column = relation.columns.find((each) => each.name === name);
      return column === undefined ? null : shownValue(column, row);
    };
    const object: Record<string, unknown> = shownRow(relation, row);
    for (const { name, to, columns, targetColumns } of relation.references) {
      object[name] = () => {
        if (columns.some((each) => value(each) === null)) return null;
        const where = Object.fromEntries(
          targetColumns.map((each, i) => [each, { eq: value(columns[i] ?? '') }]),
        );
        return this.#list(this.#model.relation(to), { where })[0] ?? null;
      };
    }
    for (const { name } of [...relation.inverses, ...relation.many]) {
      object[name] = (given: ListInput, _context: unknown, _info: GraphQLResolveInfo) => {
        const { to, rows } = this.#model.linked(relation.name, row, name);
        const { limit = rows.length, ...list } = listOf(given);
        const target = this.#model.relation(to);
        return this.#rows(target, list)
          .filter((each) => rows.includes(each))
          .slice(0, limit)
          .map((each) => this.#object(target, each));
      };
    }
    return object;
  }
}
