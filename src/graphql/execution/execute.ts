import { type ExecutionResult, GraphQLError, locatedError } from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { executeFields, executeSerially } from './execute-fields.ts';
import type { Plans } from './plans.ts';
import { withLists } from './result-text.ts';
import { Run, type RunOptions } from './run.ts';

/**
 * Runs an operation as GraphQL's "Execution" says; the result comes at once when no resolver is asynchronous.
 * Errors of the result are GraphQLErrors, with what the program threw as their `originalError`. Never fails.
 */
export function execute(
  options: Omit<RunOptions, 'fragments' | 'propagatesErrors'>,
  plans: Plans,
): MaybePromise<ExecutionResult> {
  const { fragments, propagatesErrors } = plans;
  const run = new Run({ ...options, fragments, propagatesErrors });
  const { budget } = run;
  const complete = (data: Record<string, unknown> | null): ExecutionResult => {
    const isWithin = data === null || budget.isWithin();
    run.complete();
    if (!isWithin && budget.exceeded) return { errors: [budget.exceeded], data: null };
    const result = run.errors.length > 0 ? { errors: run.errors, data } : { data };
    return budget.holdsText ? withLists(result) : result;
  };
  const fail = (error: unknown): ExecutionResult => {
    if (budget.exceeded !== undefined) {
      run.complete();
      return { errors: [budget.exceeded], data: null };
    }
    run.add(error instanceof GraphQLError ? error : locatedError(error, undefined, undefined));
    return complete(null);
  };
  const finish = (result: ExecutionResult): ExecutionResult => {
    run.finish();
    return result;
  };
  try {
    const selection = plans.find(options.variables);
    const data =
      options.definition.operation === 'mutation'
        ? executeSerially(run, selection, options.rootValue)
        : executeFields(run, selection, options.rootValue, undefined);
    return data instanceof Promise ? data.then(complete, fail).then(finish) : finish(complete(data));
  } catch (error) {
    return finish(fail(error));
  }
}
