import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  isObjectType,
  locatedError,
  responsePathAsArray,
} from 'graphql';
import { isThenable, type MaybePromise } from '../../src/core/scheduler.ts';
import { completeAsyncList, completeList } from './complete-list.ts';
import { executeFields } from './execute.ts';
import type { FieldPlan, OutputPlan } from './plans.ts';
import { type JsonList, JsonText } from './results.ts';
import { after, type Path, type Run } from './run.ts';

/**
 * The info of the field that a value belongs to. Set for fields with a resolver and if `FieldPlan.needsInfo`.
 */
type Info = GraphQLResolveInfo | undefined;

/**
 * Completes a value or a promise of one. An error makes only this value null if it is nullable. Promises are
 * awaited with the same number of microtasks as in GraphQL.js, which decides which of several errors a result
 * contains.
 */
export function settle(
  run: Run,
  field: FieldPlan,
  info: Info,
  output: OutputPlan,
  path: Path,
  value: unknown,
): unknown {
  if (isThenable(value)) return settleLater(run, field, info, output, path, value);
  try {
    const completed = complete(run, field, info, output, path, value);
    return completed instanceof Promise
      ? completed.then(undefined, (error: unknown) => fail(run, field, output, path, error))
      : completed;
  } catch (error) {
    return fail(run, field, output, path, error);
  }
}

async function settleLater(
  run: Run,
  field: FieldPlan,
  info: Info,
  output: OutputPlan,
  path: Path,
  promise: PromiseLike<unknown>,
): Promise<unknown> {
  try {
    const value = await promise;
    run.checkUnfinished();
    const completed = complete(run, field, info, output, path, value);
    // Await only promises: each await takes a microtask.
    return completed instanceof Promise ? await completed : completed;
  } catch (error) {
    return fail(run, field, output, path, error);
  }
}

/** Records the error if the position is nullable; otherwise throws it, so that the enclosing value fails. */
export function fail(run: Run, field: FieldPlan, output: OutputPlan, path: Path, error: unknown): null {
  // A result that is too large fails as a whole.
  if (run.budget.exceeded !== undefined) throw run.budget.exceeded;
  const located = locatedError(error, field.nodes, responsePathAsArray(path));
  if (output.nonNull && run.propagatesErrors) throw located;
  run.add(located, path);
  return null;
}

function complete(
  run: Run,
  field: FieldPlan,
  info: Info,
  output: OutputPlan,
  path: Path,
  value: unknown,
): unknown {
  if (value instanceof Error) throw value;
  if (value === null || value === undefined) {
    if (!output.nonNull) return null;
    throw new TypeError(`Cannot return null for non-nullable field ${nameOf(field)}.`);
  }
  if (value instanceof JsonText) {
    run.budget.holdText(value);
    return value;
  }
  switch (output.kind) {
    case 'leaf':
      return output.takesText && typeof value === 'string' ? value : completeLeaf(output.type, value);
    case 'list':
      return completeItems(run, field, info, output.item, path, value);
    case 'object':
      return completeObject(run, field, info, output.type, path, value);
    case 'abstract':
      return completeAbstract(run, field, info, output.type, path, value);
  }
}

/**
 * Throws a plain error whatever the type throws: an invalid value is the program's fault, not the client's.
 */
function completeLeaf(type: GraphQLLeafType, value: unknown): unknown {
  let completed: unknown;
  try {
    completed = type.coerceOutputValue(value);
  } catch (cause) {
    throw new TypeError(`A value does not fit the type ${type}`, { cause });
  }
  if (completed === null || completed === undefined) {
    throw new TypeError(
      `Expected \`${type}.coerceOutputValue()\` to return non-nullable value, returned: ${completed}`,
    );
  }
  return completed;
}

function completeItems(
  run: Run,
  field: FieldPlan,
  info: Info,
  item: OutputPlan,
  path: Path,
  list: unknown,
): MaybePromise<readonly unknown[] | JsonList> {
  const complete = (value: unknown, index: number) => {
    return settle(run, field, info, item, { prev: path, key: index, typename: undefined }, value);
  };
  if (isAsyncIterable(list)) return completeAsyncList(run, list, complete);
  if (!isIterable(list)) {
    throw new TypeError(`Expected Iterable, but did not find one for field "${nameOf(field)}".`);
  }
  return completeList(run, list, complete, field.isPlain);
}

/** Strings are not lists; neither are functions, unless they are async iterables. */
function isIterable(value: unknown): value is Iterable<unknown> {
  return (
    typeof value === 'object' && typeof (value as Iterable<unknown> | null)?.[Symbol.iterator] === 'function'
  );
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function';
}

function nameOf({ parent, name }: FieldPlan): string {
  return `${parent.name}.${name}`;
}

type Results = Record<string, unknown>;

/** Completes a value as an object of a type, checking `isTypeOf` if the type defines it. */
function completeObject(
  run: Run,
  field: FieldPlan,
  info: Info,
  type: GraphQLObjectType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  if (type.isTypeOf == null) return executeFields(run, field.select(type), value, path);
  const execute = (fits: boolean): MaybePromise<Results> => {
    // The message omits the value because it may be internal.
    if (!fits) throw new TypeError(`Expected value of type "${type}" but got another one.`);
    return executeFields(run, field.select(type), value, path);
  };
  const fits = type.isTypeOf(value, run.context, info as GraphQLResolveInfo);
  return isThenable(fits) ? later(run, fits, execute) : execute(fits);
}

/** Completes a value as an object of the type that an interface or a union resolves it to. */
function completeAbstract(
  run: Run,
  field: FieldPlan,
  info: Info,
  abstract: GraphQLAbstractType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  const execute = (name: unknown): MaybePromise<Results> =>
    completeObject(run, field, info, possibleType(run, field, abstract, name), path, value);
  const resolveType = abstract.resolveType ?? defaultTypeResolver;
  const name = resolveType(value, run.context, info as GraphQLResolveInfo, abstract);
  return isThenable(name) ? later(run, name, execute) : execute(name);
}

/** Continues once `resolveType` or `isTypeOf` has answered, unless the result is delivered by then. */
function later<T>(
  run: Run,
  answer: PromiseLike<T>,
  execute: (value: T) => MaybePromise<Results>,
): Promise<Results> {
  return after(answer, (value) => {
    run.checkUnfinished();
    return execute(value);
  });
}

function possibleType(
  run: Run,
  field: FieldPlan,
  abstract: GraphQLAbstractType,
  name: unknown,
): GraphQLObjectType {
  const place = `"${abstract}" must resolve to an Object type at runtime for field "${field.parent}.${field.name}"`;
  if (name === undefined || name === null) {
    throw new TypeError(
      `Abstract type ${place}. Either the "${abstract}" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`,
    );
  }
  if (typeof name !== 'string') {
    throw new TypeError(`Abstract type ${place}, received a value that is not a valid Object type name.`);
  }
  const type = run.schema.getType(name);
  if (type == null) {
    throw new TypeError(
      `Abstract type "${abstract}" was resolved to a type "${name}" that does not exist inside the schema.`,
    );
  }
  if (!isObjectType(type)) {
    throw new TypeError(`Abstract type "${abstract}" was resolved to a non-object type "${name}".`);
  }
  if (!run.schema.isSubType(abstract, type)) {
    throw new TypeError(`Runtime Object type "${type}" is not a possible type for "${abstract}".`);
  }
  return type;
}
