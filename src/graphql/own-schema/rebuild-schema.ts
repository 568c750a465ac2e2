import {
  GraphQLDirective,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigMap,
  type GraphQLFieldResolver,
  GraphQLInputObjectType,
  GraphQLInterfaceType,
  type GraphQLIsTypeOfFn,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  type GraphQLType,
  type GraphQLTypeResolver,
  GraphQLUnionType,
  introspectionTypes,
  specifiedDirectives,
  specifiedScalarTypes,
} from 'graphql';
import type { ScalarFunctions } from '../../config/schema/graphql-code.ts';
import { isKind } from './is-kind.ts';

/** What changes in a field. */
export interface FieldChange {
  readonly resolve?: GraphQLFieldResolver<unknown, unknown>;
  readonly subscribe?: GraphQLFieldResolver<unknown, unknown>;
}

/** What changes in a type. */
export interface TypeChange {
  readonly fields?: ReadonlyMap<string, FieldChange>;
  readonly resolveType?: GraphQLTypeResolver<unknown, unknown>;
  readonly isTypeOf?: GraphQLIsTypeOfFn<unknown, unknown>;
  /** The inner values of an enum. */
  readonly values?: ReadonlyMap<string, unknown>;
  readonly scalar?: ScalarFunctions;
}

const ours: ReadonlyMap<string, GraphQLNamedType> = new Map(
  [...specifiedScalarTypes, ...introspectionTypes].map((type) => [type.name, type]),
);

/**
 * Makes a schema anew with changes to its types, by name. It reads only what a GraphQLSchema shows, and no class, so
 * the schema may be of another copy of GraphQL.js, whose types ours would refuse.
 */
export function rebuildSchema(
  schema: GraphQLSchema,
  changes: ReadonlyMap<string, TypeChange> = new Map(),
): GraphQLSchema {
  const made = new Map<string, GraphQLNamedType>(ours);

  function named<T extends GraphQLNamedType>(type: T): T {
    const known = made.get(type.name) ?? anew(type, changes.get(type.name) ?? {});
    made.set(type.name, known);
    return known as T;
  }

  function typeOf<T extends GraphQLType>(type: T): T;
  function typeOf(type: GraphQLType): GraphQLType {
    if (isKind<GraphQLList<GraphQLType>>(type, 'List')) return new GraphQLList(typeOf(type.ofType));
    if (isKind<GraphQLNonNull<GraphQLNamedType>>(type, 'NonNull')) {
      return new GraphQLNonNull(typeOf(type.ofType));
    }
    return named(type as GraphQLNamedType);
  }

  const withType = <T extends { readonly type: GraphQLType }>(config: T): T => ({
    ...config,
    type: typeOf(config.type),
  });

  const fieldOf = (field: GraphQLFieldConfig<unknown, unknown>, change: FieldChange | undefined) => ({
    ...withType(field),
    args: mapValues(field.args ?? {}, withType),
    // They say how the built-in resolver may run.
    ...(change && { ...change, extensions: {} }),
  });

  const fieldsOf = (fields: GraphQLFieldConfigMap<unknown, unknown>, { fields: changed }: TypeChange) =>
    mapValues(fields, (field, name) => fieldOf(field, changed?.get(name)));

  function anew(type: GraphQLNamedType, change: TypeChange): GraphQLNamedType {
    const { resolveType, isTypeOf, values } = change;
    if (isKind<GraphQLScalarType>(type, 'ScalarType')) return scalarOf(type, change);
    if (isKind<GraphQLEnumType>(type, 'EnumType')) {
      const config = type.toConfig();
      const withValue = (value: object, name: string) =>
        values?.has(name) ? { ...value, value: values.get(name) } : value;
      return new GraphQLEnumType({ ...config, values: mapValues(config.values, withValue) });
    }
    if (isKind<GraphQLInputObjectType>(type, 'InputObjectType')) {
      const config = type.toConfig();
      return new GraphQLInputObjectType({ ...config, fields: () => mapValues(config.fields, withType) });
    }
    if (isKind<GraphQLUnionType>(type, 'UnionType')) {
      const config = type.toConfig();
      return new GraphQLUnionType({
        ...config,
        types: () => config.types.map(named),
        ...(resolveType && { resolveType }),
      });
    }
    if (isKind<GraphQLInterfaceType>(type, 'InterfaceType')) {
      const config = type.toConfig();
      return new GraphQLInterfaceType({
        ...config,
        interfaces: () => config.interfaces.map(named),
        fields: () => fieldsOf(config.fields, change),
        ...(resolveType && { resolveType }),
      });
    }
    const config = (type as GraphQLObjectType).toConfig();
    return new GraphQLObjectType({
      ...config,
      interfaces: () => config.interfaces.map(named),
      fields: () => fieldsOf(config.fields, change),
      ...(isTypeOf && { isTypeOf }),
    });
  }

  function directiveOf(directive: GraphQLDirective): GraphQLDirective {
    const own = specifiedDirectives.find(({ name }) => name === directive.name);
    if (own !== undefined) return own;
    const config = directive.toConfig();
    return new GraphQLDirective({ ...config, args: mapValues(config.args, withType) });
  }

  const { query, mutation, subscription, types, directives, ...config } = schema.toConfig();
  return new GraphQLSchema({
    ...config,
    query: query && named(query),
    mutation: mutation && named(mutation),
    subscription: subscription && named(subscription),
    types: types.map(named),
    directives: directives.map(directiveOf),
  });
}

function scalarOf(type: GraphQLScalarType, { scalar }: TypeChange): GraphQLScalarType {
  if (scalar === undefined) return new GraphQLScalarType(type.toConfig());
  // Without the functions that it has: some would call the others of before.
  const { name, description, specifiedByURL, extensions, astNode, extensionASTNodes } = type;
  return new GraphQLScalarType({
    ...{ name, description, specifiedByURL, extensions, astNode, extensionASTNodes },
    ...scalar,
  });
}

function mapValues<T, U>(
  map: Readonly<Record<string, T>>,
  change: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value, key)]));
}
