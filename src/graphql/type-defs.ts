import { isKind } from '@portico/graphql-plans';
import {
  buildASTSchema,
  type DocumentNode,
  extendSchema,
  GraphQLDirective,
  GraphQLEnumType,
  GraphQLError,
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
  isTypeSystemDefinitionNode,
  isTypeSystemExtensionNode,
  Kind,
  parse,
  Source,
  specifiedDirectives,
  specifiedScalarTypes,
} from 'graphql';
import type { Given } from '../config/schema/fields.ts';
import { describeValue } from '../core/text.ts';
import type { ScalarFunctions } from './config.ts';

/**
 * Builds the schema from type definitions: a complete schema, or an extension of the built-in one. If they
 * are invalid, appends the problems to `problems` and returns undefined.
 */
export function schemaOf(
  given: Given,
  builtIn: GraphQLSchema,
  problems: string[],
): GraphQLSchema | undefined {
  const document = readTypeDefs(given, problems);
  if (document === undefined) return undefined;
  try {
    return isWhole(document) ? buildASTSchema(document) : extendSchema(builtIn, document);
  } catch (error) {
    // GraphQL.js throws a single error with all messages.
    const messages = error instanceof Error ? error.message.split('\n\n') : [String(error)];
    problems.push(...messages.map((message) => `${given.path} is not valid: ${message}`));
    return undefined;
  }
}

/** Whether the definitions form a complete schema. */
function isWhole({ definitions }: DocumentNode): boolean {
  return definitions.some(
    (each) =>
      each.kind === Kind.SCHEMA_DEFINITION ||
      (each.kind === Kind.OBJECT_TYPE_DEFINITION && each.name.value === 'Query'),
  );
}

function readTypeDefs({ value, path }: Given, problems: string[]): DocumentNode | undefined {
  const items: readonly Given[] = Array.isArray(value)
    ? Array.from<unknown, Given>(value, (item, index) => ({ value: item, path: `${path}[${index}]` }))
    : [{ value, path }];
  const documents = items.map((item) => readDocument(item, problems));
  if (items.length === 0) problems.push(`${path} is empty; leave it out`);
  if (items.length === 0 || documents.includes(undefined)) return undefined;
  return {
    kind: Kind.DOCUMENT,
    definitions: documents.flatMap((document) => document?.definitions ?? []),
  };
}

function readDocument({ value, path }: Given, problems: string[]): DocumentNode | undefined {
  const document = typeof value === 'string' ? parsed(value, path, problems) : value;
  if (document === undefined && typeof value === 'string') return undefined;
  if (!isDocument(document)) {
    problems.push(
      `${path} must be a string or a DocumentNode of type definitions, not ${describeValue(value)}`,
    );
    return undefined;
  }
  const other = document.definitions.find(
    (each) => !isTypeSystemDefinitionNode(each) && !isTypeSystemExtensionNode(each),
  );
  if (other === undefined) return document;
  problems.push(`${path} must contain only type definitions, but has an operation or a fragment`);
  return undefined;
}

function parsed(text: string, path: string, problems: string[]): DocumentNode | undefined {
  try {
    return parse(new Source(text, path));
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const [{ line, column } = { line: 1, column: 1 }] = error.locations ?? [];
    const what = error.message.replace(/^Syntax Error: /, '');
    problems.push(`${path} has a syntax error at line ${line}, column ${column}: ${what}`);
    return undefined;
  }
}

function isDocument(value: unknown): value is DocumentNode {
  const { kind, definitions } = Object(value) as Partial<DocumentNode>;
  return kind === Kind.DOCUMENT && Array.isArray(definitions);
}

/** Changes to a field. */
export interface FieldChange {
  readonly resolve?: GraphQLFieldResolver<unknown, unknown>;
  readonly subscribe?: GraphQLFieldResolver<unknown, unknown>;
}

/** Changes to a type. */
export interface TypeChange {
  readonly fields?: ReadonlyMap<string, FieldChange>;
  readonly resolveType?: GraphQLTypeResolver<unknown, unknown>;
  readonly isTypeOf?: GraphQLIsTypeOfFn<unknown, unknown>;
  /** The internal values of an enum. */
  readonly values?: ReadonlyMap<string, unknown>;
  readonly scalar?: ScalarFunctions;
}

const builtInTypes: ReadonlyMap<string, GraphQLNamedType> = new Map(
  [...specifiedScalarTypes, ...introspectionTypes].map((type) => [type.name, type]),
);

/**
 * Rebuilds a schema with changes to its types, by name. It relies only on the public properties of
 * GraphQLSchema, not on classes, so the schema may come from another copy of GraphQL.js, whose types this
 * copy would refuse.
 */
export function rebuildSchema(
  schema: GraphQLSchema,
  changes: ReadonlyMap<string, TypeChange> = new Map(),
): GraphQLSchema {
  const made = new Map<string, GraphQLNamedType>(builtInTypes);

  function named<T extends GraphQLNamedType>(type: T): T {
    const known = made.get(type.name) ?? rebuild(type, changes.get(type.name) ?? {});
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
    // The other extensions describe how the built-in resolver may run.
    ...(change && { ...change, extensions: accessOf(field) }),
  });

  const fieldsOf = (fields: GraphQLFieldConfigMap<unknown, unknown>, { fields: changed }: TypeChange) =>
    mapValues(fields, (field, name) => fieldOf(field, changed?.get(name)));

  function rebuild(type: GraphQLNamedType, change: TypeChange): GraphQLNamedType {
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

/** The extension with the relation that callers of a field need access to. */
function accessOf({ extensions }: GraphQLFieldConfig<unknown, unknown>) {
  return extensions?.access === undefined ? {} : { access: extensions.access };
}

function scalarOf(type: GraphQLScalarType, { scalar }: TypeChange): GraphQLScalarType {
  if (scalar === undefined) return new GraphQLScalarType(type.toConfig());
  // Drop the existing functions: some of them call each other.
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
