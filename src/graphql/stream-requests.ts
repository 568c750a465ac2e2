import type { FastifyReply, preHandlerHookHandler } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { parseAccept, takesEventStream } from '../http/accept.ts';
import { exchangeOf } from '../http/add-endpoint.ts';
import { refuseFromOtherSite } from '../http/cross-site.ts';
import type { Exchange } from '../http/endpoint.ts';
import { EVENT_STREAM_HEADERS, type EventStreams } from '../http/event-stream/event-streams.ts';
import { authorize, resultsWhileValid } from './access.ts';
import { resultText } from './execution/result-text.ts';
import type { Refused } from './executor.ts';
import { EVENT_STREAM, negotiateResultType } from './media-type.ts';
import type { Operation } from './operation.ts';
import { paramsOf, type RequestParams } from './request-params.ts';
import { masked, type RunOptions, refuseWriteByGet } from './run-request.ts';

/**
 * Answers requests that take an event stream with one (GraphQL over SSE, distinct connections mode): subscriptions, and whatever runs for a client that takes
 * nothing else. The endpoint answers all others.
 */
export function streamRequests(streams: EventStreams, options: RunOptions): preHandlerHookHandler {
  return (request, reply, done) => {
    const { accept } = request.headers;
    if (!takesEventStream(accept) || parseAccept(accept)(EVENT_STREAM).weight === 0) return done();
    const exchange = exchangeOf(request);
    try {
      const params = paramsOf(exchange);
      if (Array.isArray(params)) return done();
      const operation = options.findOperation(params);
      const subscribes = !('errors' in operation) && operation.definition.operation === 'subscription';
      if (!subscribes && negotiateResultType(accept) !== undefined) return done();
      refuseFromOtherSite('Event streams', exchange, options.cors);
      if (!('errors' in operation)) {
        refuseWriteByGet(exchange, operation);
        authorize(options.gate, exchange, operation);
      }
      // A stream has no end of its own, and HEAD waits for nothing else.
      if (exchange.method === 'HEAD') reply.type(EVENT_STREAM).send();
      else eventsOf(operation, params, options, exchange).then(send(reply, exchange)).catch(done);
    } catch (error) {
      done(error as Error);
    }
  };

  /** Sends results. It knows nothing of the request's variables, which would be held as long as the stream lasts. */
  function send(reply: FastifyReply, exchange: Exchange) {
    const text = (result: ExecutionResult) =>
      `event: next\ndata: ${resultText(masked(exchange, result))}\n\n`;
    return async (opened: AsyncIterable<ExecutionResult> | ExecutionResult): Promise<void> => {
      if (isStream(opened)) await streams.send(reply, opened, { text, end: () => COMPLETE });
      // A single result is refused like any other reply where there is no room for it.
      else reply.headers(EVENT_STREAM_HEADERS).send(text(opened) + COMPLETE);
    };
  }
}

const COMPLETE = 'event: complete\ndata: \n\n';

function isStream(
  opened: AsyncIterable<ExecutionResult> | ExecutionResult,
): opened is AsyncIterable<ExecutionResult> {
  return Symbol.asyncIterator in opened;
}

/** The results of a subscription as a stream, or the one of any other operation. */
async function eventsOf(
  operation: Operation | Refused,
  { variables }: RequestParams,
  { gate, contextOf }: RunOptions,
  exchange: Exchange,
): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> {
  if ('errors' in operation) return { errors: operation.errors };
  const context = contextOf(exchange);
  if (operation.definition.operation !== 'subscription') return operation.run(variables, context, exchange);
  const source = await operation.subscribe(variables, context, exchange);
  return isStream(source) ? resultsWhileValid(source, gate, exchange) : source;
}
