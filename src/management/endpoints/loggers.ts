import type { FastifyRequest } from 'fastify';
import { HttpProblem } from '../../http/problem.ts';
import { LOG_LEVELS, type LogLevel } from '../../observability/log/log-level.ts';
import type { LoggerState, Loggers } from '../../observability/log/loggers.ts';
import type { Endpoint } from '../endpoint.ts';
import { parseDuration } from '../iso-duration.ts';
import { COMMON_HEADERS, jsonBytes, replyJson } from '../json-reply.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { addOperations } from '../operations.ts';
import { addReadRoute } from '../read-route.ts';

/** Actuator's words for our levels. */
const WORDS = new Map<LogLevel, string>(
  LOG_LEVELS.map((level) => [level, level === 'silent' ? 'OFF' : level.toUpperCase()]),
);
const LEVELS = new Map(Array.from(WORDS, ([level, word]) => [word, level]));
const DAY = 86_400_000;

type Named = { readonly Params: { readonly name: string } };

/** The loggers endpoint: what each part of the service logs, to be changed while it runs. */
export function loggersEndpoint(loggers: Loggers): Endpoint {
  function stateOf(name: string): LoggerState {
    const state = loggers.state(name);
    if (state === undefined) throw NOT_FOUND;
    return state;
  }

  function describeAll() {
    const described = loggers.names().map((name) => [name, describe(stateOf(name))]);
    return { levels: [...LEVELS.keys()], loggers: Object.fromEntries(described), groups: {} };
  }

  return {
    id: 'loggers',
    about: 'What each part of the service logs. A POST of {"configuredLevel":"debug"} changes it.',
    links: [
      { name: 'loggers', path: '/loggers', templated: false },
      { name: 'loggers-name', path: '/loggers/{name}', templated: true },
    ],
    addRoutes(scope, access) {
      addReadRoute(scope, '/loggers', (_request, reply) => replyJson(reply, jsonBytes(describeAll())));
      addOperations(scope, '/loggers/:name', {
        GET: (request, reply) => {
          const { name } = (request as FastifyRequest<Named>).params;
          return replyJson(reply, jsonBytes(describe(stateOf(name))));
        },
        ...(access === 'unrestricted' && {
          POST: (request, reply) => {
            const { name } = (request as FastifyRequest<Named>).params;
            stateOf(name);
            const { level, forMs } = readChange(request);
            loggers.setLevel(name, level, forMs);
            return reply.code(204).headers(COMMON_HEADERS).send();
          },
        }),
      });
    },
  };
}

function describe({ configured, effective, until }: LoggerState) {
  return {
    configuredLevel: configured && WORDS.get(configured),
    effectiveLevel: WORDS.get(effective),
    revertsAt: until === undefined ? undefined : new Date(until).toISOString(),
  };
}

/** What a POST asks for: a level, or none of its own; `for` is in the body or the query. */
function readChange({ body, query }: FastifyRequest) {
  const { configuredLevel = null, for: inBody = null } = asObject(body);
  const duration = inBody ?? (query as Record<string, unknown>).for ?? null;
  const level = configuredLevel === null ? undefined : LEVELS.get(String(configuredLevel).toUpperCase());
  if (configuredLevel !== null && (typeof configuredLevel !== 'string' || level === undefined)) {
    const levels = [...LEVELS.keys()].join(', ');
    throw new HttpProblem(400, 'LOG_LEVEL', `configuredLevel has to be one of ${levels}, or null`);
  }
  return { level, forMs: duration === null ? undefined : readFor(duration) };
}

function asObject(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined || body === null) return {};
  const known = Object.keys(body).every((key) => key === 'configuredLevel' || key === 'for');
  if (typeof body !== 'object' || Array.isArray(body) || !known) {
    throw new HttpProblem(
      400,
      'LOGGER',
      'The body has to be an object with configuredLevel, and for if wanted',
    );
  }
  return body as Readonly<Record<string, unknown>>;
}

function readFor(duration: unknown): number {
  const forMs = typeof duration === 'string' ? parseDuration(duration) : undefined;
  if (forMs === undefined || forMs === 0 || forMs > DAY) {
    throw new HttpProblem(400, 'DURATION', 'for has to be an ISO 8601 duration of at most a day, like PT10M');
  }
  return forMs;
}
