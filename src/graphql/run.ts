import { type ExecutionResult, execute, GraphQLError, type GraphQLSchema, getOperationAST } from 'graphql';
import { HttpProblem } from '../http/problem.ts';
import type { MaybePromise } from '../users/maybe-promise.ts';
import { Documents } from './documents.ts';
import type { RequestParams } from './request-params.ts';

/**
 * Runs one request. `readOnly` is a GET: it may not run a mutation (GraphQL over HTTP, "GET"), which is
 * an HttpProblem with status 405. A result without `data` never began to run.
 */
export type Run = (params: RequestParams, readOnly: boolean) => MaybePromise<ExecutionResult>;

export function createRun(schema: GraphQLSchema): Run {
  const documents = new Documents(schema);
  return ({ query, operationName, variables }, readOnly) => {
    const prepared = documents.prepare(query);
    if ('errors' in prepared) return prepared;
    const { document } = prepared;
    const operation = getOperationAST(document, operationName);
    if (operation == null) return { errors: [new GraphQLError('The operation to run cannot be determined')] };
    if (operation.operation === 'subscription')
      return { errors: [new GraphQLError('Subscriptions are not supported')] };
    if (operation.operation === 'mutation' && readOnly) {
      throw new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', { headers: { allow: 'POST' } });
    }
    return execute({
      schema,
      document,
      ...(operationName !== undefined && { operationName }),
      ...(variables !== undefined && { variableValues: variables }),
    });
  };
}
