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
  isSpecifiedScalarType,
} from 'graphql';
import { type Given, type Named, pathTo } from '../../config/schema/given.ts';
import type { ScalarFunctions } from '../../config/schema/graphql-code.ts';
import { describeValue } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { FieldChange, TypeChange } from './rebuild-schema.ts';

const SCALAR_FUNCTIONS = [
  'serialize',
  'parseValue',
  'parseLiteral',
  'coerceOutputValue',
  'coerceInputValue',
  'coerceInputLiteral',
  'valueToLiteral',
] as const satisfies readonly (keyof ScalarFunctions)[];

/** Reads resolvers against the schema that they are for: what each type gets. Appends all that is wrong to `problems`. */
export function readResolvers(
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
      problems.push(`${given.path} names no type of the schema${hint}`);
    } else if (isBuiltIn(type) || isInputObjectType(type)) {
      const what = isInputObjectType(type) ? 'is an input type' : 'is a type of GraphQL itself';
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
      `${pathTo(path, key)} cannot be: an interface or a union has __resolveType alone, its object types have the fields`,
    );
  }
  return withFunction('resolveType', resolveType, pathTo(path, '__resolveType'), problems);
}

/** Its functions by name; a GraphQLScalarType of any copy of GraphQL.js has them too. */
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
      problems.push(`${path} has ${literal} and needs ${whole} too`);
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
    problems.push(`${pathTo(path, key)} names no value of ${type.name}${didYouMean(key, known)}`);
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
    else problems.push(`${at} names no field of ${type.name}${didYouMean(key, [...known, '__isTypeOf'])}`);
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
