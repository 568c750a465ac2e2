import type { FastifyReply } from 'fastify';
import { HttpProblem } from '../http/problem.ts';
import { isThenable } from '../observability/thenable.ts';
import type { Endpoint } from './endpoint.ts';
import { COMMON_HEADERS } from './json-reply.ts';
import { addReadRoute } from './read-route.ts';

/** An endpoint that a user adds (contract 4.3): what `read` returns is the reply, as it is. */
export interface CustomEndpoint {
  /** Also its path below the base path. */
  readonly id: string;
  read(): string | Promise<string>;
}

/** The read operation of a custom endpoint failed; the cause is for the log, never for the client. */
export class CustomEndpointError extends Error {
  override readonly name = 'CustomEndpointError';
  readonly code = 'CUSTOM_ENDPOINT';
}

const HEADERS = { ...COMMON_HEADERS, 'content-type': 'text/plain; charset=utf-8' } as const;

/** A custom endpoint. A read that fails is 500, one that takes longer than `timeoutMs` is cut with 503. */
export function customEndpoint(endpoint: CustomEndpoint, timeoutMs = 10_000): Endpoint {
  const { id } = endpoint;
  const path = `/${id}`;
  const failure = (cause: unknown) => new CustomEndpointError(`The endpoint ${id} failed`, { cause });

  function send(reply: FastifyReply, text: unknown): FastifyReply {
    if (typeof text !== 'string') throw failure(new TypeError(`it returned ${typeof text}, not a string`));
    return reply.headers(HEADERS).send(Buffer.from(text));
  }

  return {
    id,
    links: [{ name: id, path, templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, path, (_request, reply) => {
        let text: unknown;
        try {
          text = endpoint.read();
        } catch (cause) {
          throw failure(cause);
        }
        if (!isThenable(text)) return send(reply, text);
        return within(Promise.resolve(text), timeoutMs, id).then(
          (settled) => send(reply, settled),
          (cause: unknown) => {
            throw cause instanceof EndpointTimeout ? cause : failure(cause);
          },
        );
      });
    },
  };
}

class EndpointTimeout extends HttpProblem {}

function within<T>(promise: Promise<T>, timeoutMs: number, id: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const message = `The endpoint ${id} did not answer within ${timeoutMs} ms`;
      reject(new EndpointTimeout(503, 'CUSTOM_ENDPOINT_TIMEOUT', message));
    }, timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
