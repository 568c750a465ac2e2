import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import type { Loggers } from '../../telemetry/loggers.ts';
import { LOG_LEVELS } from '../../telemetry/loggers.ts';
import { jsonReply, NO_CONTENT, NOT_FOUND } from '../management-errors.ts';
import type { ManagementEndpoint } from '../operations.ts';
import { parseDuration } from './recent.ts';

type LogLevel = (typeof LOG_LEVELS)[number];

type LoggerState = NonNullable<ReturnType<Loggers['state']>>;

/** Actuator's names for the levels. */
const WORDS = new Map<LogLevel, string>(
  LOG_LEVELS.map((level) => [level, level === 'silent' ? 'OFF' : level.toUpperCase()]),
);
const LEVELS = new Map(Array.from(WORDS, ([level, word]) => [word, level]));
const DAY = 86_400_000;

/** The loggers endpoint: the level of each logger, which a POST changes. */
export function loggersEndpoint(loggers: Loggers): ManagementEndpoint {
  function stateOf(name: string): LoggerState {
    const state = loggers.state(name);
    if (state === undefined) throw NOT_FOUND;
    return state;
  }

  function describeAll() {
    const described = loggers.names().map((name) => [name, describe(stateOf(name))]);
    return { levels: [...LEVELS.keys()], loggers: Object.fromEntries(described), groups: {} };
  }

  function change({ param: name, query }: RequestContext, body: unknown): Reply {
    stateOf(name);
    const { level, forMs } = readChange(body, query);
    loggers.setLevel(name, level, forMs);
    return NO_CONTENT;
  }

  return {
    id: 'loggers',
    about: 'The level of every logger. A POST of {"configuredLevel":"debug"} changes it.',
    routes: () => ({
      '/loggers': { get: (ctx) => jsonReply(ctx, describeAll()) },
      '/loggers/{name}': {
        get: (ctx) => jsonReply(ctx, describe(stateOf(ctx.param))),
        post: change,
      },
    }),
  };
}

function describe({ configured, effective, until }: LoggerState) {
  return {
    configuredLevel: configured && WORDS.get(configured),
    effectiveLevel: WORDS.get(effective),
    revertsAt: until === undefined ? undefined : new Date(until).toISOString(),
  };
}

/** Parses a POST: a level, or null to inherit one; `for` is in the body or the query. Throws HttpProblem. */
function readChange(body: unknown, query: RequestContext['query']) {
  const { configuredLevel = null, for: inBody = null } = asObject(body);
  const duration = inBody ?? query.for ?? null;
  const level = configuredLevel === null ? undefined : LEVELS.get(String(configuredLevel).toUpperCase());
  if (configuredLevel !== null && (typeof configuredLevel !== 'string' || level === undefined)) {
    const levels = [...LEVELS.keys()].join(', ');
    throw new HttpProblem(400, 'LOG_LEVEL', `configuredLevel must be one of ${levels}, or null`);
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
      'The body must be an object with configuredLevel and, optionally, for',
    );
  }
  return body as Readonly<Record<string, unknown>>;
}

function readFor(duration: unknown): number {
  const forMs = typeof duration === 'string' ? parseDuration(duration) : undefined;
  if (forMs === undefined || forMs === 0 || forMs > DAY) {
    throw new HttpProblem(
      400,
      'DURATION',
      'for must be an ISO 8601 duration of at most a day, such as PT10M',
    );
  }
  return forMs;
}
