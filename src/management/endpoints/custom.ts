import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import {
  type CustomEndpoint,
  type EndpointParameter,
  type EndpointRequest,
  type EndpointWrite,
  parseParameter,
} from '../../config/schema/custom-endpoint.ts';
import { isThenable } from '../../core/thenable.ts';
import { HttpProblem } from '../../http/problem.ts';
import { boundedOperation, CustomEndpointError } from '../bounded-operation.ts';
import type { Endpoint } from '../endpoint.ts';
import { COMMON_HEADERS, replyJson } from '../json-reply.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { addOperations, type Operations } from '../operations.ts';

export type { CustomEndpoint } from '../../config/schema/custom-endpoint.ts';

const TEXT = { ...COMMON_HEADERS, 'content-type': 'text/plain; charset=utf-8' } as const;
const BYTES = { ...COMMON_HEADERS, 'content-type': 'application/octet-stream' } as const;

/** An endpoint of the user's own. Each of its operations has `timeoutMs` to answer. */
export function customEndpoint(endpoint: CustomEndpoint, timeoutMs = 10_000): Endpoint {
  const { id } = endpoint;
  const segment = parseParameter(endpoint.path);
  const query = (endpoint.query ?? []).flatMap((name) => parseParameter(name) ?? []);

  function handler(
    operation: ((request: EndpointWrite) => unknown) | undefined,
    missing: 404 | 204,
  ): RouteHandlerMethod | undefined {
    if (operation === undefined) return undefined;
    const call = boundedOperation<EndpointWrite>(`The endpoint ${id}`, operation.bind(endpoint), timeoutMs);
    return (request, reply) => {
      const answer = call(requestOf(request, { segment, query }, missing === 204));
      if (!isThenable(answer)) return send(reply, answer, missing, id);
      return answer.then((settled) => send(reply, settled, missing, id));
    };
  }

  const links = [];
  if (segment?.optional !== false) links.push({ name: id, path: `/${id}`, templated: false });
  if (segment !== undefined) {
    links.push({ name: `${id}-${segment.name}`, path: `/${id}/{${segment.name}}`, templated: true });
  }
  return {
    id,
    about: 'An endpoint that was added to this service.',
    links,
    writeOnly: endpoint.read === undefined,
    addRoutes(scope, access) {
      const may = <H>(method: H) => (access === 'unrestricted' ? method : undefined);
      const operations: Operations = {
        GET: handler(endpoint.read, 404),
        POST: may(handler(endpoint.write, 204)),
        DELETE: may(handler(endpoint.delete, 204)),
      };
      if (segment?.optional !== false) addOperations(scope, `/${id}`, operations);
      if (segment !== undefined) addOperations(scope, `/${id}/:${segment.name}`, operations);
    },
  };
}

interface Parameters {
  readonly segment: EndpointParameter | undefined;
  readonly query: readonly EndpointParameter[];
}

/** What the operation is given. Throws what a request without a parameter is answered. */
function requestOf(
  { params, query: given, body }: FastifyRequest,
  { segment, query: declared }: Parameters,
  writes: boolean,
): EndpointWrite {
  const path: Record<string, string> = {};
  const value = segment && (params as Readonly<Record<string, string>>)[segment.name];
  // The router takes an empty segment for one; a slash at the end makes it another path.
  if (value === '') throw NOT_FOUND;
  if (segment !== undefined && value !== undefined) path[segment.name] = value;
  const query: Record<string, string> = {};
  for (const { name, optional } of declared) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (typeof value === 'string') query[name] = value;
    else if (value !== undefined) throw badRequest(`The parameter ${name} is given more than once`);
    else if (!optional) throw badRequest(`The parameter ${name} is missing`);
  }
  const request: EndpointRequest = { path, query };
  return writes ? { ...request, body } : (request as EndpointWrite);
}

function badRequest(message: string): HttpProblem {
  return new HttpProblem(400, 'PARAMETER', message);
}

// contract 4.3: what the read operation returns is a plain string.
function send(reply: FastifyReply, answer: unknown, missing: 404 | 204, id: string): FastifyReply {
  if (typeof answer === 'string') return reply.headers(TEXT).send(Buffer.from(answer));
  if (answer instanceof Uint8Array) return reply.headers(BYTES).send(Buffer.from(answer));
  if (answer !== undefined && answer !== null) return replyJson(reply, json(answer, id));
  if (missing === 404) throw NOT_FOUND;
  return reply.code(204).headers(COMMON_HEADERS).send();
}

function json(answer: unknown, id: string): Buffer {
  let text: string | undefined;
  let cause: unknown = new TypeError(`it returned a ${typeof answer}`);
  try {
    text = JSON.stringify(answer);
  } catch (error) {
    cause = error;
  }
  if (text === undefined)
    throw new CustomEndpointError(`What the endpoint ${id} returned is no JSON`, { cause });
  return Buffer.from(text);
}
