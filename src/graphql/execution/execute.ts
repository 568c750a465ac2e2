import { type ExecutionResult, GraphQLError, locatedError } from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { executeFields, executeSerially } from './execute-fields.ts';
import type { Plans } from './plans.ts';
import { unlessAbandoned } from './recipient.ts';
import { withLists } from './result-text.ts';
import { Run, type RunOptions } from './run.ts';

/**
 * Runs an operation as GraphQL's "Execution" says; the result comes at once when no resolver is asynchronous.
 * Errors of the result are GraphQLErrors, with what the program threw as their `originalError`. Never fails.
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
        (error: unknown) => fail(run, error),
      )
      .then((made) => finish(run, made));
    return unlessAbandoned(options.recipient, result, () => {
      run.complete();
      run.finish();
    });
  } catch (error) {
    return finish(run, fail(run, error));
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

function fail(run: Run, error: unknown): ExecutionResult {
  const { exceeded } = run.budget;
  if (exceeded !== undefined) {
    run.complete();
    return { errors: [exceeded], data: null };
  }
  run.add(error instanceof GraphQLError ? error : locatedError(error, undefined, undefined));
  return complete(run, null);
}

/** One microtask after the result is made, as in GraphQL.js: what still runs stops then. */
function finish(run: Run, result: ExecutionResult): ExecutionResult {
  run.finish();
  return result;
}
