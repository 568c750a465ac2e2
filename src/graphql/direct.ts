import type { ExecutionResult } from 'graphql';
import { parseJsonBody } from '../http/body/json-body.ts';
import type { DirectExchange } from '../http/fast-path/fast-exchange.ts';
import type { DirectHandler } from '../http/fast-path/fast-path.ts';
import { HttpProblem } from '../http/problem.ts';
import type { FindOperation } from './executor.ts';
import { maskErrors } from './mask-errors.ts';
import { EVENT_STREAM, needsEventStream, negotiateResultType } from './media-type.ts';
import { paramsFromBody, type RequestParams } from './request-params.ts';
import { resultBody, resultStatus, resultTypeHeader } from './result.ts';

const CONTENT_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;

/**
 * The endpoint's part in the direct lane: queries and mutations by POST, of programs. What browsers send, streams
 * and bodies that are refused go to the framework.
 */
export function directGraphql(findOperation: FindOperation, maxBodyBytes: number): DirectHandler {
  return (exchange) => {
    const { accept, 'content-type': label, 'sec-fetch-site': site } = exchange.headers;
    const type = negotiateResultType(accept);
    if (type === undefined || accept?.includes(EVENT_STREAM) || site !== undefined) return false;
    if (label === undefined || !CONTENT_TYPE.test(label)) return false;
    const { body } = exchange;
    const params = body.length > maxBodyBytes ? undefined : readParams(body);
    if (params === undefined) return false;
    const operation = findOperation(params);
    const send = (result: ExecutionResult) =>
      exchange.send(resultStatus(result, type), resultTypeHeader(type), resultBody(masked(exchange, result)));
    if ('errors' in operation) send(operation);
    else if (operation.definition.operation === 'subscription') exchange.fail(needsEventStream());
    else exchange.answer(operation.run(params.variables, undefined), send);
    return true;
  };
}

/** Undefined for a body that is refused. */
function readParams(body: Buffer): RequestParams | undefined {
  try {
    return paramsFromBody(parseJsonBody(body));
  } catch (error) {
    if (error instanceof HttpProblem) return undefined;
    throw error;
  }
}

function masked(exchange: DirectExchange, result: ExecutionResult): ExecutionResult {
  return maskErrors(result, (error) => exchange.logError(error, 'resolver failed'));
}
