import {
  GraphQLBoolean,
  type GraphQLEnumType,
  type GraphQLFieldConfig,
  type GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLScalarType,
  type GraphQLSchema,
  GraphQLString,
  isListType,
  isNonNullType,
} from 'graphql';
import { quote } from '../../core/text.ts';
import { type Relation, servesRelations, USERS } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { groupArguments } from '../aggregates/aggregate-types.ts';
import { relationExamples } from '../graphiql/examples.ts';
import { type LazyFields, LazyObjectType, LazySchema } from './lazy.ts';
import type { RelationResolvers, RootField } from './resolvers.ts';
import {
  capitalized,
  LIST_LIMIT,
  mayHide,
  mayLeave,
  RelationTypes,
  SHARED_NAMES,
  typeNameOf,
  typeNames,
  uniquesOf,
} from './types.ts';

type Field = GraphQLFieldConfig<unknown, unknown>;
type NamedField = readonly [name: string, make: () => Field];

/** The names of a relation's fields of the root types. */
function rootNames({ name, one }: Relation) {
  const type = capitalized(one);
  return {
    query: [name, one, `${name}Connection`, `${name}Aggregate`],
    mutation: [
      `create${type}`,
      `create${capitalized(name)}`,
      `upsert${type}`,
      `update${type}`,
      `delete${type}`,
    ],
    subscription: [`${one}Created`, `${one}Updated`, `${one}Deleted`, `${name}Changed`],
  } as const;
}

/**
 * Why relations cannot be added to a schema: names that are there already, of types and of fields of the root types.
 * Appends a line for each to `problems`.
 */
export function schemaProblems(
  relations: Relations,
  schema: GraphQLSchema,
  { extendsUsers, problems, name }: { extendsUsers: boolean; problems: string[]; name: string },
): void {
  const claimed = (taken: Iterable<string>) => {
    const owners = new Map(Array.from(taken, (each) => [each, 'Portico']));
    return (what: string, owner: string) => {
      const other = owners.get(what);
      if (other === undefined) owners.set(what, owner);
      else {
        const whose = other === 'Portico' ? 'Portico has' : `relations.${other} has`;
        problems.push(
          `${name}: relations.${owner} makes ${quote(what)} in GraphQL, which ${whose} already; write another "one", or rename it`,
        );
      }
    };
  };
  const fieldsOf = (type: GraphQLObjectType | null | undefined) => Object.keys(type?.getFields() ?? {});
  const type = claimed([...Object.keys(schema.getTypeMap()), ...SHARED_NAMES]);
  const roots = {
    query: claimed(fieldsOf(schema.getQueryType())),
    mutation: claimed(fieldsOf(schema.getMutationType())),
    subscription: claimed(fieldsOf(schema.getSubscriptionType())),
  };
  for (const relation of relations.values()) {
    for (const each of typeNames(relation, extendsUsers)) type(each, relation.name);
    const names = rootNames(relation);
    if (relation.name === USERS) {
      if (extendsUsers) roots.query(names.query[2], relation.name);
      continue;
    }
    for (const each of names.query) roots.query(each, relation.name);
    for (const each of names.mutation) roots.mutation(each, relation.name);
    for (const each of names.subscription) roots.subscription(each, relation.name);
    const uniques = new Set([relation.key, ...relation.unique].map(String));
    if (uniquesOf(relation).size < uniques.size) {
      problems.push(
        `${name}: relations.${relation.name} has two uniques with one name in GraphQL; rename a column`,
      );
    }
  }
}

/**
 * A schema with the relations of a declaration besides what another one has. `resolvers` resolve their fields. The
 * types are made when they are first asked for.
 */
export function relationsSchema(
  schema: GraphQLSchema,
  relations: Relations,
  resolvers: RelationResolvers,
): GraphQLSchema {
  const user = schema.getType('User') as GraphQLObjectType;
  const types = new RelationTypes(relations, user, resolvers.users !== undefined);
  const fields = new RootFields(types, resolvers, schema);
  const roots = [
    new LazyObjectType(schema.getQueryType(), fields.query()),
    new LazyObjectType(schema.getMutationType(), fields.mutation()),
    new LazyObjectType(schema.getSubscriptionType(), fields.subscription()),
  ];
  const hasExamples = servesRelations([...relations.values()]);
  return new LazySchema(schema, types, roots, hasExamples ? { examples: relationExamples(relations) } : {});
}

/** A type with the same lists and nulls as another one. */
function typeWith(named: GraphQLObjectType, type: GraphQLOutputType): GraphQLOutputType {
  if (isNonNullType(type)) return new GraphQLNonNull(typeWith(named, type.ofType) as GraphQLObjectType);
  return isListType(type) ? new GraphQLList(typeWith(named, type.ofType)) : named;
}

/** The fields of the root types. */
class RootFields {
  readonly #types: RelationTypes;
  readonly #resolvers: RelationResolvers;
  readonly #schema: GraphQLSchema;
  readonly #served: readonly Relation[];

  /** `schema` has the fields of users. */
  constructor(types: RelationTypes, resolvers: RelationResolvers, schema: GraphQLSchema) {
    this.#types = types;
    this.#resolvers = resolvers;
    this.#schema = schema;
    this.#served = [...types.relations.values()].filter(({ name }) => name !== USERS);
  }

  query(): LazyFields {
    const { users } = this.#resolvers;
    const own = this.#ofUsers(this.#schema.getQueryType(), { users: users?.list, user: users?.row });
    const relation = this.#types.relations.get(USERS);
    if (users !== undefined && relation !== undefined)
      own.push([rootNames(relation).query[2], () => this.#connection(relation)]);
    return this.#all(own, (relation) => {
      const [list, row, connection, aggregate] = rootNames(relation).query;
      return [
        [list, () => this.#list(relation)],
        [row, () => this.#row(relation)],
        [connection, () => this.#connection(relation)],
        [aggregate, () => this.#aggregate(relation)],
      ];
    });
  }

  mutation(): LazyFields {
    const own = this.#ofUsers(this.#schema.getMutationType(), { createUser: this.#resolvers.users?.create });
    return this.#all(own, (relation) => {
      if (relation.existing?.isView) return [];
      const [create, createAll, upsert, update, remove] = rootNames(relation).mutation;
      const { name } = relation;
      const input = (kind: 'Create' | 'Upsert' = 'Create') =>
        new GraphQLNonNull(this.#type<GraphQLInputObjectType>(relation, kind));
      const row = () => {
        const type = this.#types.row(relation);
        return mayHide(relation) ? type : new GraphQLNonNull(type);
      };
      return [
        [
          create,
          () =>
            this.#field(relation, 'create', {
              type: row(),
              description: `Creates a row of ${name}.`,
              args: { data: { type: input() } },
            }),
        ],
        [
          createAll,
          () =>
            this.#field(relation, 'createAll', {
              type: new GraphQLNonNull(new GraphQLList(row())),
              description: `Creates rows of ${name}, all or none.`,
              args: { data: { type: new GraphQLNonNull(new GraphQLList(input())) } },
            }),
        ],
        [
          upsert,
          () =>
            this.#field(relation, 'upsert', {
              type: row(),
              description: `Creates a row of ${name}, or changes the columns of \`data\` in the one with the same values of \`on\`.`,
              args: {
                data: { type: input('Upsert') },
                on: { type: new GraphQLNonNull(this.#type<GraphQLEnumType>(relation, 'Unique')) },
              },
            }),
        ],
        [
          update,
          () =>
            this.#field(relation, 'update', {
              type: row(),
              description: `Changes columns of a row of ${name}.`,
              args: {
                ...this.#types.keyArguments(relation),
                data: { type: new GraphQLNonNull(this.#type<GraphQLInputObjectType>(relation, 'Patch')) },
                ...this.#ifVersion(),
              },
            }),
        ],
        [
          remove,
          () =>
            this.#field(relation, 'remove', {
              type: new GraphQLNonNull(GraphQLBoolean),
              description: `Removes a row of ${name}.`,
              args: { ...this.#types.keyArguments(relation), ...this.#ifVersion() },
            }),
        ],
      ];
    });
  }

  subscription(): LazyFields {
    const followed = this.#resolvers.users?.followed;
    const own = this.#ofUsers(this.#schema.getSubscriptionType(), {
      userCreated: followed,
      userUpdated: followed,
      userDeleted: followed,
    });
    return this.#all(own, (relation) => {
      if (!relation.changes) return [];
      const [created, updated, deleted, changed] = rootNames(relation).subscription;
      const of = (what: 'created' | 'updated' | 'deleted') => () =>
        this.#field(relation, what, {
          type: new GraphQLNonNull(
            what === 'deleted' && mayLeave(relation) ? this.#types.key(relation) : this.#types.row(relation),
          ),
          description: `Each row of ${relation.name} that is ${what} from now on.`,
          args: this.#where(relation),
        });
      return [
        [created, of('created')],
        [updated, of('updated')],
        [deleted, of('deleted')],
        [changed, () => this.#changed(relation)],
      ];
    });
  }

  #list(relation: Relation): Field {
    return this.#field(relation, 'list', {
      type: this.#rows(relation),
      description: `Rows of ${relation.name}.`,
      args: {
        ...this.#types.listArguments(relation),
        limit: {
          type: GraphQLInt,
          default: { value: LIST_LIMIT.default },
          description: `How many rows, at most ${LIST_LIMIT.max}.`,
        },
        after: {
          type: GraphQLString,
          description: 'A cursor of the same list, behind which the rows stand.',
        },
      },
    });
  }

  #row(relation: Relation): Field {
    return this.#field(relation, 'row', {
      type: this.#types.row(relation),
      description: `The row of ${relation.name} with this key. It is null when there is none.`,
      args: this.#types.keyArguments(relation),
    });
  }

  #connection(relation: Relation): Field {
    return this.#field(relation, 'connection', {
      type: new GraphQLNonNull(this.#type<GraphQLObjectType>(relation, 'Connection')),
      description: `A page of ${relation.name}, as in Relay: \`first\` rows after a cursor, or the \`last\` ones before it.`,
      args: {
        first: { type: GraphQLInt },
        after: { type: GraphQLString },
        last: { type: GraphQLInt },
        before: { type: GraphQLString },
        ...this.#types.listArguments(relation),
      },
    });
  }

  #aggregate(relation: Relation): Field {
    const group = new GraphQLNonNull(this.#type<GraphQLObjectType>(relation, 'Aggregate'));
    return this.#field(relation, 'aggregate', {
      type: new GraphQLNonNull(new GraphQLList(group)),
      description: `Counts, sums and the like of rows of ${relation.name}, for each group in the order of its values.`,
      args: {
        ...this.#where(relation),
        ...groupArguments(relation, typeNameOf(relation), this.#types),
      },
    });
  }

  #changed(relation: Relation): Field {
    return this.#field(relation, 'changed', {
      type: new GraphQLNonNull(this.#type<GraphQLObjectType>(relation, 'Change')),
      description: `Each change of rows of ${relation.name}, from now on or after an earlier one.`,
      args: {
        ...this.#where(relation),
        after: { type: GraphQLString, description: 'The position of the last change.' },
      },
    });
  }

  /** The fields of the contract with the type that users have here, for those that have resolvers. */
  #ofUsers(
    root: GraphQLObjectType | null | undefined,
    resolvers: Readonly<Record<string, Pick<Field, 'extensions'> | undefined>>,
  ): NamedField[] {
    return Object.entries(resolvers).flatMap(([name, resolved]): NamedField[] => {
      if (resolved === undefined) return [];
      const field = () => {
        const own = root?.toConfig().fields[name];
        if (own === undefined) throw new Error(`The schema of users has no field ${name}`);
        const type = typeWith(this.#types.user, own.type);
        return { ...own, type, extensions: { ...own.extensions, ...resolved.extensions } };
      };
      return [[name, field]];
    });
  }

  #all(own: readonly NamedField[], fieldsOf: (relation: Relation) => readonly NamedField[]): LazyFields {
    return new Map([...own, ...this.#served.flatMap(fieldsOf)]);
  }

  #field(relation: Relation, what: RootField, field: Field): Field {
    return { ...field, ...this.#resolvers[what](relation) };
  }

  #rows(relation: Relation): GraphQLOutputType {
    return new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(this.#types.row(relation))));
  }

  #type<T extends GraphQLNamedType>(relation: Relation, suffix: string): T {
    return this.#types.get<T>(`${typeNameOf(relation)}${suffix}`);
  }

  #where(relation: Relation) {
    const { where } = this.#types.listArguments(relation);
    return where === undefined ? {} : { where };
  }

  #ifVersion() {
    return {
      ifVersion: {
        type: this.#types.get<GraphQLScalarType>('SafeInt'),
        description: 'The `_version` that the row must have; otherwise nothing is written.',
      },
    };
  }
}
