import { type ExecutionResult, type GraphQLError, locatedError } from 'graphql';
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
export function execute(options: Omit<RunOptions, 'fragments'>, plans: Plans): MaybePromise<ExecutionResult> {
  const run = new Run({ ...options, fragments: plans.fragments });
  const { budget } = run;
  const refuse = (error: GraphQLError): ExecutionResult => {
    run.finish();
    return { errors: [error], data: null };
  };
  const finish = (data: Record<string, unknown> | null): ExecutionResult => {
    if (data !== null && !budget.isWithin() && budget.exceeded) return refuse(budget.exceeded);
    run.finish();
    const result = run.errors.length > 0 ? { errors: run.errors, data } : { data };
    return budget.holdsText ? withLists(result) : result;
  };
  const fail = (error: unknown): ExecutionResult => {
    if (budget.exceeded !== undefined) return refuse(budget.exceeded);
    run.add(locatedError(error, undefined, undefined));
    return finish(null);
  };
  try {
    const selection = plans.find(options.variables);
    const data =
      options.definition.operation === 'mutation'
        ? executeSerially(run, selection, options.rootValue)
        : executeFields(run, selection, options.rootValue, undefined);
    if (!(data instanceof Promise)) return finish(data);
    return unlessAbandoned(options.recipient, data.then(finish, fail), () => run.finish());
  } catch (error) {
    return fail(error);
  }
}
