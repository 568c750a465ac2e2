import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { Operation, type ResultLimits } from '@portico/graphql-plans';
import {
  buildSchema,
  type ExecutionResult,
  execute,
  type GraphQLFieldResolver,
  type GraphQLIsTypeOfFn,
  type GraphQLScalarType,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  isAbstractType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  Kind,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { defaultsOf } from '../../../src/config/options/options.ts';
import { CooperativeScheduler } from '../../../src/core/scheduler.ts';

const LIMITS = defaultsOf('graphql');

/** What resolvers get: they note here what was called. */
export interface Context {
  readonly calls: string[];
}

export type Resolver = GraphQLFieldResolver<unknown, Context>;

/** What is added to a type of a schema. */
export interface TypeCode {
  readonly fields?: Readonly<Record<string, Resolver>>;
  readonly subscribe?: Readonly<Record<string, Resolver>>;
  readonly isTypeOf?: GraphQLIsTypeOfFn<unknown, Context>;
  readonly resolveType?: GraphQLTypeResolver<unknown, Context>;
  readonly scalar?: Partial<GraphQLScalarType>;
}

/** A schema with the code of its types. */
export function schemaOf(sdl: string, code: Readonly<Record<string, TypeCode>> = {}): GraphQLSchema {
  const schema = buildSchema(sdl);
  for (const [name, { fields = {}, subscribe = {}, isTypeOf, resolveType, scalar }] of Object.entries(code)) {
    const type = schema.getType(name);
    if (isObjectType(type) || isInterfaceType(type)) {
      for (const [field, resolve] of Object.entries(fields)) Object.assign(field_(field), { resolve });
      for (const [field, open] of Object.entries(subscribe))
        Object.assign(field_(field), { subscribe: open });
    }
    if (isObjectType(type) && isTypeOf !== undefined) type.isTypeOf = isTypeOf;
    if (isAbstractType(type) && resolveType !== undefined) type.resolveType = resolveType;
    if (isScalarType(type)) Object.assign(type, scalar);

    function field_(field: string): object {
      assert.ok(isObjectType(type) || isInterfaceType(type));
      const found = type.getFields()[field];
      assert.ok(found !== undefined, `${name}.${field}`);
      return found;
    }
  }
  return schema;
}

export interface Asked {
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly operationName?: string;
}

/** What a run gave: the result as a client sees it, what was called, and whether the result came at once. */
export interface Given {
  readonly result: { readonly data?: unknown; readonly errors?: readonly { readonly message: string }[] };
  readonly text: string;
  readonly calls: readonly string[];
  readonly atOnce: boolean;
}

export function operationOf(
  schema: GraphQLSchema,
  query: string,
  operationName?: string,
  limits: Partial<ResultLimits> = {},
): Operation {
  const document = parse(query);
  const definition = document.definitions.find(
    (node): node is OperationDefinitionNode =>
      node.kind === Kind.OPERATION_DEFINITION &&
      (operationName === undefined || node.name?.value === operationName),
  );
  assert.ok(definition !== undefined);
  return new Operation(document, definition, {
    schema,
    suggestions: true,
    limits: { ...LIMITS, ...limits },
    // However slow the machine is, nothing goes on in turns.
    turns: new CooperativeScheduler(0, Number.POSITIVE_INFINITY),
    onPlanned() {},
    meter: undefined,
  });
}

/** Runs a query through GraphQL.js, then twice through ours, and says what they all gave. */
export async function same(schema: GraphQLSchema, query: string, asked: Asked = {}): Promise<Given> {
  const { variables = {}, operationName } = asked;
  const document = parse(query);
  const theirs = await given((contextValue) =>
    execute({
      schema,
      document,
      contextValue,
      variableValues: variables,
      ...(operationName !== undefined && { operationName }),
    }),
  );
  const operation = operationOf(schema, query, operationName);
  for (const time of ['first', 'second']) {
    const ours = await given((context) => operation.run(variables, context));
    assert.equal(ours.text, theirs.text, `the ${time} result`);
    assert.deepEqual(ours.calls, theirs.calls, `the calls of the ${time} run`);
    assert.equal(ours.atOnce, theirs.atOnce);
  }
  return theirs;
}

async function given(run: (context: Context) => ExecutionResult | Promise<ExecutionResult>): Promise<Given> {
  const context: Context = { calls: [] };
  const running = run(context);
  const text = shown(await running);
  // What goes on after the result is there calls what it calls, and changes nothing.
  for (let count = 0; count < 5; count++) await turn();
  assert.equal(shown(await running), text);
  return { result: JSON.parse(text), text, calls: context.calls, atOnce: !(running instanceof Promise) };
}

/** Messages of GraphQL.js that quote a value, and ours that do not. */
const QUOTES =
  /^(?:(?:String|Int|Float|ID|Boolean|Enum "\w+") cannot represent|A value does not fit the type|Expected `|Expected value of type|Abstract type .* received )/;

/** The JSON of a result without the values that messages quote. */
export function shown(result: ExecutionResult): string {
  const plain = JSON.parse(JSON.stringify(result)) as ExecutionResult;
  for (const error of plain.errors ?? []) {
    if (QUOTES.test(error.message)) Object.assign(error, { message: 'a wrong value' });
  }
  return JSON.stringify({ data: plain.data, errors: plain.errors });
}

/** A promise that takes so many microtasks. */
export async function ticks<T>(count: number, value: () => T): Promise<T> {
  for (let left = count; left > 0; left--) await undefined;
  return value();
}

/** Throws. */
export function raise(message: string): never {
  throw new Error(message);
}
