import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  type GraphQLLeafType,
  type GraphQLObjectType,
  isObjectType,
  locatedError,
  responsePathAsArray,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { isThenable } from '../../core/maybe-promise.ts';
import { completeAsyncList, completeList, ignoreErrors } from './complete-list.ts';
import type { FieldPlan, SelectionPlan } from './field-plan.ts';
import type { JsonList } from './json-list.ts';
import type { OutputPlan } from './output-plan.ts';
import type { Path, Run } from './run.ts';

type Results = Record<string, unknown>;

/** Runs the fields of a selection side by side. Throws, or rejects with, the error that makes all of it null. */
export function executeFields(
  run: Run,
  { fields, create, bytes }: SelectionPlan,
  source: unknown,
  path: Path | undefined,
): MaybePromise<Results> {
  const { budget } = run;
  const results = create();
  let length = bytes;
  let pending = false;
  try {
    for (const field of fields) {
      const value = executeField(run, field, source, path);
      if (typeof value === 'string') length += value.length;
      else if (value instanceof Promise) pending = true;
      results[field.key] = value;
    }
  } catch (error) {
    if (pending) ignoreErrors(Object.values(results));
    throw error;
  }
  budget.values += fields.length;
  budget.bytes += length;
  return pending ? settled(run, results) : results;
}

/** Runs the fields of a mutation one after the other. */
export function executeSerially(
  run: Run,
  { fields, create, bytes }: SelectionPlan,
  source: unknown,
): MaybePromise<Results> {
  run.budget.values += fields.length;
  run.budget.bytes += bytes;
  const results = create();
  const from = (start: number): MaybePromise<Results> => {
    for (const [offset, field] of fields.slice(start).entries()) {
      const value = executeField(run, field, source, undefined);
      if (value instanceof Promise) {
        return value.then((settledValue) => {
          // Of what nobody waits for nothing more is begun.
          if (run.finished) throw new Error('The run has finished');
          results[field.key] = settledValue;
          return from(start + offset + 1);
        });
      }
      results[field.key] = value;
    }
    return results;
  };
  return from(0);
}

async function settled({ budget }: Run, results: Results): Promise<Results> {
  const values = await Promise.all(Object.values(results));
  for (const [index, key] of Object.keys(results).entries()) {
    const value = values[index];
    // One that was there at once is counted already.
    if (typeof value === 'string' && results[key] !== value) budget.bytes += value.length;
    results[key] = value;
  }
  return results;
}

function executeField(run: Run, field: FieldPlan, source: unknown, prev: Path | undefined): unknown {
  const { output } = field;
  let path: Path | undefined;
  try {
    let value = field.resolve === undefined ? propertyOf(source, field.name) : undefined;
    // Nearly all fields take this path.
    if (typeof value === 'string' && output.kind === 'leaf' && output.takesText) return value;
    path = { prev, key: field.key, typename: field.parent.name };
    if (field.resolve !== undefined) {
      const given = field.readArguments(run.variables);
      value =
        field.once && prev === undefined
          ? run.once(field, given, field.resolve, path)
          : field.resolve(source, given, run.context, run.info(field, path));
    } else if (typeof value === 'function') {
      value = value.call(source, field.readArguments(run.variables), run.context, run.info(field, path));
    }
    return settle(run, field, output, path, value);
  } catch (error) {
    return fail(run, field, output, path ?? { prev, key: field.key, typename: field.parent.name }, error);
  }
}

function propertyOf(source: unknown, name: string): unknown {
  return (typeof source === 'object' && source !== null) || typeof source === 'function'
    ? (source as Results)[name]
    : undefined;
}

/** Completes a value or a promise of one. A failure makes only this value null where null is allowed. */
function settle(run: Run, field: FieldPlan, output: OutputPlan, path: Path, value: unknown): unknown {
  try {
    if (isThenable(value)) return settleLater(run, field, output, path, value);
    const completed = complete(run, field, output, path, value);
    return completed instanceof Promise
      ? completed.catch((error: unknown) => fail(run, field, output, path, error))
      : completed;
  } catch (error) {
    return fail(run, field, output, path, error);
  }
}

async function settleLater(
  run: Run,
  field: FieldPlan,
  output: OutputPlan,
  path: Path,
  promise: PromiseLike<unknown>,
): Promise<unknown> {
  try {
    return await whileRunning(run, promise, (value) => complete(run, field, output, path, value));
  } catch (error) {
    return fail(run, field, output, path, error);
  }
}

/** Continues with the value of a promise; rejects when the run has finished meanwhile. */
async function whileRunning<T, R>(
  run: Run,
  promise: PromiseLike<T>,
  use: (value: T) => MaybePromise<R>,
): Promise<R> {
  const value = await promise;
  if (run.finished) throw new Error('The run has finished');
  return use(value);
}

/** Records the error where null is allowed; else throws it, so that the enclosing value fails. */
function fail(run: Run, field: FieldPlan, output: OutputPlan, path: Path, error: unknown): null {
  // Nothing can be saved of a result that is too large.
  if (run.budget.exceeded !== undefined) throw run.budget.exceeded;
  const located = locatedError(error, field.nodes, responsePathAsArray(path));
  if (output.nonNull) throw located;
  run.add(located, path);
  return null;
}

function complete(run: Run, field: FieldPlan, output: OutputPlan, path: Path, value: unknown): unknown {
  if (value instanceof Error) throw value;
  if (value === null || value === undefined) {
    if (!output.nonNull) return null;
    throw new TypeError(`Cannot return null for non-nullable field ${nameOf(field)}`);
  }
  switch (output.kind) {
    case 'leaf':
      return output.takesText && typeof value === 'string' ? value : completeLeaf(output.type, value);
    case 'list':
      return completeItems(run, field, output.item, path, value);
    case 'object':
      return completeObject(run, field, output.type, path, value);
    case 'abstract':
      return completeAbstract(run, field, output.type, path, value);
  }
}

/** Throws a plain error, whatever the type throws: a value that does not fit is the program's fault. */
function completeLeaf(type: GraphQLLeafType, value: unknown): unknown {
  let completed: unknown;
  try {
    completed = type.coerceOutputValue(value);
  } catch (cause) {
    throw new TypeError(`A value does not fit the type ${type}`, { cause });
  }
  if (completed === null || completed === undefined) throw new TypeError(`The type ${type} gave no value`);
  return completed;
}

function completeItems(
  run: Run,
  field: FieldPlan,
  item: OutputPlan,
  path: Path,
  list: unknown,
): MaybePromise<readonly unknown[] | JsonList> {
  const { budget } = run;
  const complete = (value: unknown, index: number) => {
    return settle(run, field, item, { prev: path, key: index, typename: undefined }, value);
  };
  if (isAsyncIterable(list)) return completeAsyncList(budget, list, complete);
  if (!isIterable(list)) throw new TypeError(`Expected a list for field ${nameOf(field)}`);
  return completeList(budget, list, complete);
}

function completeObject(
  run: Run,
  field: FieldPlan,
  type: GraphQLObjectType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  const execute = (fits: boolean): MaybePromise<Results> => {
    if (!fits) throw new TypeError(`A value is no ${type} for field ${nameOf(field)}`);
    return executeFields(run, field.select(type), value, path);
  };
  if (type.isTypeOf == null) return execute(true);
  const fits = type.isTypeOf(value, run.context, run.info(field, pathOfField(path)));
  return isThenable(fits) ? whileRunning(run, fits, execute) : execute(fits);
}

function completeAbstract(
  run: Run,
  field: FieldPlan,
  abstract: GraphQLAbstractType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  const execute = (name: unknown): MaybePromise<Results> => {
    const type = typeof name === 'string' ? run.schema.getType(name) : undefined;
    if (!isObjectType(type) || !run.schema.isSubType(abstract, type)) {
      throw new TypeError(`A value has no possible type of ${abstract} for field ${nameOf(field)}`);
    }
    return completeObject(run, field, type, path, value);
  };
  const resolveType = abstract.resolveType ?? defaultTypeResolver;
  const name = resolveType(value, run.context, run.info(field, pathOfField(path)), abstract);
  return isThenable(name) ? whileRunning(run, name, execute) : execute(name);
}

/** The field that an item of its list stands in. */
function pathOfField(path: Path): Path {
  return typeof path.key === 'number' && path.prev !== undefined ? pathOfField(path.prev) : path;
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function nameOf({ parent, name }: FieldPlan): string {
  return `${parent.name}.${name}`;
}
