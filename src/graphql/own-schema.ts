import { isKind } from '@portico/graphql-plans';
import {
  type GraphQLEnumType,
  type GraphQLFieldResolver,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isObjectType,
  isScalarType,
  isSchema,
  isSpecifiedScalarType,
  validateSchema,
} from 'graphql';
import { type Given, type Named, pathTo } from '../config/schema/fields.ts';
import { describeError } from '../core/errors.ts';
import { entriesOf, isRecord, unknownKey } from '../core/json.ts';
import { describeValue, didYouMean } from '../core/text.ts';
import type { UserFeed } from '../relations/events.ts';
import type { UserStore } from '../relations/user.ts';
import type { GraphqlCode, ScalarFunctions, Users } from './config.ts';
import { type FieldChange, rebuildSchema, schemaOf, type TypeChange } from './type-defs.ts';
import { showErrors } from './users-schema.ts';

/** The schema settings of a configuration. */
export type SchemaCode = Pick<GraphqlCode, 'typeDefs' | 'resolvers' | 'schema'>;

/**
 * The schema that a configuration asks for, based on the built-in one; `name` is the module's name in
 * messages. Appends problems to `problems`; if there are any, the result must not be used.
 */
export function ownSchema(
  { typeDefs, resolvers, schema }: SchemaCode,
  builtIn: GraphQLSchema,
  name: string,
  problems: string[],
): GraphQLSchema {
  const path = (key: string) => `${name}: graphql.${key}`;
  if (schema !== undefined) {
    const others = Object.entries({ typeDefs, resolvers }).filter(([, value]) => value !== undefined);
    for (const [key] of others)
      problems.push(`${path(key)} and graphql.schema exclude each other; leave one out`);
    return givenSchema({ value: schema, path: path('schema') }, problems) ?? builtIn;
  }
  if (typeDefs === undefined && resolvers === undefined) return builtIn;
  const defined =
    typeDefs === undefined
      ? builtIn
      : schemaOf({ value: typeDefs, path: path('typeDefs') }, builtIn, problems);
  if (defined === undefined) return builtIn;
  const wrong = validity(defined, path('typeDefs'));
  const changes = readResolvers({ value: resolvers, path: path('resolvers') }, defined, wrong);
  problems.push(...wrong);
  if (wrong.length > 0) return builtIn;
  const made = rebuildSchema(defined, changes);
  problems.push(...missingResolvers(made, path('resolvers')));
  return made;
}

/**
 * A GraphQLSchema, rebuilt if it comes from another copy of GraphQL.js: the built command includes its own
 * copy.
 */
function givenSchema({ value, path }: Given, problems: string[]): GraphQLSchema | undefined {
  if (!isKind<GraphQLSchema>(value, 'Schema')) {
    problems.push(`${path} must be a GraphQLSchema, not ${describeValue(value)}`);
    return undefined;
  }
  try {
    const schema = isSchema(value) ? value : rebuildSchema(value);
    problems.push(...validity(schema, path));
    return schema;
  } catch (error) {
    problems.push(
      `${path} cannot be read, perhaps because of its GraphQL.js version: ${describeError(error)}`,
    );
    return undefined;
  }
}

/** The validation errors of a schema, with their locations if known. */
function validity(schema: GraphQLSchema, path: string): string[] {
  return validateSchema(schema).map((error) => {
    const [place] = error.locations ?? [];
    // Sources of the items of an array are named by their index.
    const source = error.source?.name.startsWith(path) ? error.source.name : path;
    const at = place === undefined ? '' : ` at line ${place.line}, column ${place.column}`;
    return `${source} is not valid${at}: ${error.message}`;
  });
}

/** Root fields without a resolver, which would always be null or fail because root types have no value. */
function missingResolvers(schema: GraphQLSchema, path: string): readonly string[] {
  const roots = [
    [schema.getQueryType(), 'resolve'],
    [schema.getMutationType(), 'resolve'],
    [schema.getSubscriptionType(), 'subscribe'],
  ] as const;
  return roots.flatMap(([type, part]) =>
    Object.values(type?.getFields() ?? {})
      .filter((field) => field[part] === undefined)
      .map(
        (field) =>
          `${path} has no ${part === 'resolve' ? 'resolver' : 'subscribe'} for ${type?.name}.${field.name}`,
      ),
  );
}

const SCALAR_FUNCTIONS = [
  'serialize',
  'parseValue',
  'parseLiteral',
  'coerceOutputValue',
  'coerceInputValue',
  'coerceInputLiteral',
  'valueToLiteral',
] as const satisfies readonly (keyof ScalarFunctions)[];

/**
 * Reads resolvers and checks them against their schema; returns the changes by type. Appends problems to
 * `problems`.
 */
function readResolvers(
  { value, path }: Given,
  schema: GraphQLSchema,
  problems: string[],
): ReadonlyMap<string, TypeChange> {
  if (value === undefined) return new Map();
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of types, not ${describeValue(value)}`);
    return new Map();
  }
  const own = Object.values(schema.getTypeMap()).filter((type) => !isBuiltIn(type));
  const changes = new Map<string, TypeChange>();
  for (const [name, resolvers] of entriesOf(value)) {
    const given = { name, value: resolvers, path: pathTo(path, name) };
    const type = schema.getType(name);
    if (type === undefined) {
      const hint = didYouMean(
        name,
        own.map((each) => each.name),
      );
      problems.push(`${given.path} is not a type of the schema${hint}`);
    } else if (isBuiltIn(type) || isInputObjectType(type)) {
      const what = isInputObjectType(type) ? 'is an input type' : 'is a built-in type of GraphQL';
      problems.push(`${given.path} ${what}, which has no resolvers`);
    } else {
      changes.set(name, changeOf(type, given, type === schema.getSubscriptionType(), problems));
    }
  }
  return changes;
}

function isBuiltIn(type: GraphQLNamedType): boolean {
  return isIntrospectionType(type) || isSpecifiedScalarType(type);
}

function changeOf(type: GraphQLNamedType, given: Named, subscribes: boolean, problems: string[]): TypeChange {
  const { value, path } = given;
  if (isScalarType(type)) return scalarChange(given, problems);
  if (!isRecord(value)) {
    problems.push(
      `${path} must be an object of ${isEnumType(type) ? 'values' : 'fields'}, not ${describeValue(value)}`,
    );
    return {};
  }
  if (isEnumType(type)) return enumChange(type, value, path, problems);
  if (isObjectType(type)) return objectChange(type, value, path, subscribes, problems);
  const { __resolveType: resolveType, ...others } = value;
  for (const [key] of entriesOf(others)) {
    problems.push(
      `${pathTo(path, key)} is not allowed: an interface or a union takes only __resolveType, its object types have the fields`,
    );
  }
  return withFunction('resolveType', resolveType, pathTo(path, '__resolveType'), problems);
}

/** Reads a scalar's functions by name; a GraphQLScalarType of any copy of GraphQL.js has them too. */
function scalarChange({ value, path }: Named, problems: string[]): TypeChange {
  const given = Object(value) as Readonly<Record<string, unknown>>;
  const found = SCALAR_FUNCTIONS.filter((name) => typeof given[name] === 'function');
  if (typeof value !== 'object' || found.length === 0) {
    problems.push(`${path} must be a GraphQLScalarType or an object with ${SCALAR_FUNCTIONS.join(', ')}`);
    return {};
  }
  if (isRecord(value)) {
    const wrong = entriesOf(value).filter(([key]) => !found.some((name) => name === key));
    for (const [key, other] of wrong) {
      const known = SCALAR_FUNCTIONS.some((name) => name === key);
      problems.push(
        known
          ? `${pathTo(path, key)} must be a function, not ${describeValue(other)}`
          : unknownKey(path, key, SCALAR_FUNCTIONS),
      );
    }
  }
  for (const [literal, whole] of [
    ['parseLiteral', 'parseValue'],
    ['coerceInputLiteral', 'coerceInputValue'],
  ] as const) {
    if (given[literal] !== undefined && given[whole] === undefined) {
      problems.push(`${path} has ${literal}, so it also needs ${whole}`);
    }
  }
  return { scalar: Object.fromEntries(found.map((name) => [name, given[name]])) };
}

function enumChange(
  type: GraphQLEnumType,
  value: Readonly<Record<string, unknown>>,
  path: string,
  problems: string[],
): TypeChange {
  const known = type.getValues().map(({ name }) => name);
  const values = new Map(entriesOf(value));
  for (const key of values.keys()) {
    if (known.includes(key)) continue;
    problems.push(`${pathTo(path, key)} is not a value of ${type.name}${didYouMean(key, known)}`);
  }
  return { values };
}

function objectChange(
  type: GraphQLObjectType,
  { __isTypeOf: isTypeOf, ...value }: Readonly<Record<string, unknown>>,
  path: string,
  subscribes: boolean,
  problems: string[],
): TypeChange {
  const known = Object.keys(type.getFields());
  const fields = new Map<string, FieldChange>();
  for (const [key, resolver] of entriesOf(value)) {
    const at = pathTo(path, key);
    if (known.includes(key))
      fields.set(key, fieldChange({ value: resolver, path: at }, subscribes, problems));
    else problems.push(`${at} is not a field of ${type.name}${didYouMean(key, [...known, '__isTypeOf'])}`);
  }
  return { fields, ...withFunction('isTypeOf', isTypeOf, pathTo(path, '__isTypeOf'), problems) };
}

function fieldChange({ value, path }: Given, subscribes: boolean, problems: string[]): FieldChange {
  const shape = subscribes ? '{ subscribe, resolve }' : 'a function or { resolve }';
  if (isFunction(value) && !subscribes) return { resolve: value };
  if (!isRecord(value)) {
    problems.push(`${path} must be ${shape}, not ${describeValue(value)}`);
    return {};
  }
  const known = subscribes ? ['subscribe', 'resolve'] : ['resolve'];
  const change: Record<string, unknown> = {};
  for (const [key, part] of entriesOf(value)) {
    if (!known.includes(key)) problems.push(unknownKey(path, key, known));
    else if (!isFunction(part))
      problems.push(`${pathTo(path, key)} must be a function, not ${describeValue(part)}`);
    else change[key] = part;
  }
  return change;
}

function withFunction(
  name: 'resolveType' | 'isTypeOf',
  value: unknown,
  path: string,
  problems: string[],
): TypeChange {
  if (value === undefined) return {};
  if (isFunction(value)) return { [name]: value };
  problems.push(`${path} must be a function, not ${describeValue(value)}`);
  return {};
}

function isFunction(value: unknown): value is GraphQLFieldResolver<unknown, unknown> {
  return typeof value === 'function';
}

/** The door's users for custom resolvers: refusals reach the client, as they do from `createUser`. */
export function usersForCode(users: UserStore, feed: UserFeed): Users {
  return {
    all: () => users.all(),
    byId: (id) => users.byId(id),
    add: (user) => showErrors(() => users.add(user)),
    created: () => feed.subscribe('created'),
    updated: () => feed.subscribe('updated'),
    deleted: () => feed.subscribe('deleted'),
  };
}
