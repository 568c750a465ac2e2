import { type ExecutionResult, GraphQLError, type GraphQLResolveInfo, locatedError } from 'graphql';
import type { MaybePromise } from '../../src/core/scheduler.ts';
import { fail, settle } from './complete.ts';
import {
  type FieldPlan,
  type Plans,
  type ResolveTogether,
  type SelectionPlan,
  TO_RESOLVER,
  TogetherError,
} from './plans.ts';
import { unlessAbandoned, withLists } from './results.ts';
import { channels, type Path, Run, type RunOptions, resolveMessage, traced, track } from './run.ts';
import type { Arguments } from './values.ts';

/**
 * Executes an operation as in GraphQL's "Execution". Returns the result synchronously if no resolver is
 * asynchronous. Errors in the result are GraphQLErrors with the thrown value as `originalError`. Never throws
 * or rejects.
 */
export function execute(options: RunOptions, plans: Plans): MaybePromise<ExecutionResult> {
  const run = new Run(options, plans);
  try {
    const selection = plans.find(options.variables);
    const data =
      options.definition.operation === 'mutation'
        ? executeSerially(run, selection, options.rootValue)
        : executeFields(run, selection, options.rootValue, undefined);
    if (!(data instanceof Promise)) return finish(run, complete(run, data));
    const result = data
      .then(
        (values) => complete(run, values),
        (error: unknown) => failOperation(run, error),
      )
      .then((made) => finish(run, made));
    return unlessAbandoned(options.recipient, result, () => {
      run.complete();
      run.finish();
    });
  } catch (error) {
    return finish(run, failOperation(run, error));
  }
}

function complete(run: Run, data: Record<string, unknown> | null): ExecutionResult {
  const { budget, errors } = run;
  const isWithin = data === null || budget.isWithin();
  run.complete();
  if (!isWithin && budget.exceeded) return { errors: [budget.exceeded], data: null };
  const result = errors.length > 0 ? { errors, data } : { data };
  return budget.holdsText ? withLists(result) : result;
}

function failOperation(run: Run, error: unknown): ExecutionResult {
  const { exceeded } = run.budget;
  if (exceeded !== undefined) {
    run.complete();
    return { errors: [exceeded], data: null };
  }
  run.add(error instanceof GraphQLError ? error : locatedError(error, undefined, undefined));
  return complete(run, null);
}

/**
 * Marks the run as finished one microtask after completion, as GraphQL.js does; pending fields stop then.
 */
function finish(run: Run, result: ExecutionResult): ExecutionResult {
  run.finish();
  return result;
}

type Results = Record<string, unknown>;
type Method = (given: Arguments, context: unknown, info: GraphQLResolveInfo) => unknown;

/**
 * Executes the fields of a selection in parallel. Throws or rejects with the error that makes the whole
 * selection null.
 */
export function executeFields(
  run: Run,
  { fields, create, bytes }: SelectionPlan,
  source: unknown,
  path: Path | undefined,
): MaybePromise<Results> {
  const { budget } = run;
  const results = create();
  let length = bytes;
  let pending: string[] | undefined;
  try {
    for (const field of fields) {
      const value = executeField(run, field, source, path);
      if (typeof value === 'string') length += value.length;
      else if (value instanceof Promise) {
        if (pending === undefined) pending = [field.key];
        else pending.push(field.key);
      }
      results[field.key] = value;
    }
  } catch (error) {
    if (pending !== undefined) track(Object.values(results));
    throw error;
  }
  budget.values += fields.length;
  budget.bytes += length;
  return pending === undefined ? results : settled(run, results, pending);
}

/** Executes the fields of a mutation one after the other. */
function executeSerially(
  run: Run,
  { fields, create, bytes }: SelectionPlan,
  source: unknown,
): MaybePromise<Results> {
  run.budget.values += fields.length;
  run.budget.bytes += bytes;
  let results: MaybePromise<Results> = create();
  const joined = new Map<ResolveTogether, Promise<ReadonlyMap<FieldPlan, () => unknown>>>();
  for (const field of fields) {
    const { together } = field;
    const step = (before: Results): MaybePromise<Results> => {
      // Stop starting fields once the result is abandoned.
      run.checkUnfinished();
      if (together !== undefined) {
        const others = fields.filter((each) => each.together === together);
        const all = joined.get(together) ?? executeTogether(run, others, together);
        joined.set(together, all);
        return all.then(async (settle) => {
          before[field.key] = await settle.get(field)?.();
          return before;
        });
      }
      const value = executeField(run, field, source, undefined);
      if (value instanceof Promise) {
        return value.then((settledValue) => {
          before[field.key] = settledValue;
          return before;
        });
      }
      before[field.key] = value;
      return before;
    };
    results = results instanceof Promise ? results.then(step) : step(results);
  }
  return results;
}

/**
 * Resolves the fields of a mutation that belong together. Resolves to functions that complete their values. If one
 * fails, rejects with its error.
 */
async function executeTogether(
  run: Run,
  fields: readonly FieldPlan[],
  together: ResolveTogether,
): Promise<ReadonlyMap<FieldPlan, () => unknown>> {
  const failed = (field: FieldPlan, error: unknown) => locatedError(error, field.nodes, [field.key]);
  const calls = fields.map((field) => {
    const info = run.info(field, { prev: undefined, key: field.key, typename: field.parent.name });
    try {
      return { field, given: field.readArguments(run.variables), info };
    } catch (error) {
      throw failed(field, error);
    }
  });
  try {
    const values = await together(calls, run.request);
    return new Map(
      calls.map(({ field, info }, i) => [
        field,
        () => settle(run, field, info, field.output, info.path, values[i]),
      ]),
    );
  } catch (error) {
    if (!(error instanceof TogetherError)) throw error;
    throw failed(fields[error.call] as FieldPlan, error.cause);
  }
}

async function settled({ budget }: Run, results: Results, pending: readonly string[]): Promise<Results> {
  const values = await Promise.all(pending.map((key) => results[key]));
  for (let index = 0; index < pending.length; index++) {
    const value = values[index];
    if (typeof value === 'string') budget.bytes += value.length;
    results[pending[index] as string] = value;
  }
  return results;
}

function executeField(run: Run, field: FieldPlan, source: unknown, prev: Path | undefined): unknown {
  const { output } = field;
  let path: Path | undefined;
  try {
    if (field.isProperty && !run.isTraced) {
      const value = propertyOf(source, field.name);
      // Fast path for nearly all fields.
      if (typeof value === 'string' && output.kind === 'leaf' && output.takesText) return value;
      path = { prev, key: field.key, typename: field.parent.name };
      if (typeof value === 'function') {
        const info = run.info(field, path);
        return settle(run, field, info, output, path, callMethod(run, field, source, info));
      }
      const info = field.needsInfo ? run.info(field, path) : undefined;
      return settle(run, field, info, output, path, value);
    }
    path = { prev, key: field.key, typename: field.parent.name };
    const info = run.info(field, path);
    const given = field.readArguments(run.variables);
    const value = run.isTraced
      ? traced(channels.resolve, resolveMessage(info, given, field.definition.resolve === undefined), () =>
          resolve(run, field, source, given, info),
        )
      : resolve(run, field, source, given, info);
    return settle(run, field, info, output, path, value);
  } catch (error) {
    return fail(run, field, output, path ?? { prev, key: field.key, typename: field.parent.name }, error);
  }
}

function propertyOf(source: unknown, name: string): unknown {
  return (typeof source === 'object' && source !== null) || typeof source === 'function'
    ? (source as Results)[name]
    : undefined;
}

/** Calls a method of the source. It reads the property a second time, as GraphQL.js does. */
function callMethod(run: Run, field: FieldPlan, source: unknown, info: GraphQLResolveInfo): unknown {
  const methods = source as Record<string, Method>;
  return (methods[field.name] as Method)(field.readArguments(run.variables), run.context, info);
}

function resolve(
  run: Run,
  field: FieldPlan,
  source: unknown,
  given: Arguments,
  info: GraphQLResolveInfo,
): unknown {
  if (field.selects !== undefined) {
    const value = field.selects(field, given, run.request, info);
    if (value !== TO_RESOLVER) return value;
  }
  return field.once && info.path.prev === undefined
    ? run.once(field, given, info)
    : field.resolve(source, given, run.context, info);
}
