import { HttpProblem, type RequestContext } from '@portico/transport';
import type { FastifyRequest } from 'fastify';
import { ANONYMOUS, type Audit, type AuditData, type AuditEvent, type AuditStore } from '../access/audit.ts';
import { parseBasicAuth } from '../access/basic.ts';
import { jsonReply } from './management-errors.ts';
import { maskText } from './masking.ts';
import type { ManagementEndpoint, Operation, Operations, Routes, WriteOperation } from './operations.ts';
import type { DoorOptions } from './options.ts';

/** Maximum number of events in a reply; it shows the latest. */
const LIMIT = 1_000;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+ -]\d{2}:?\d{2})$/;

/** The auditevents endpoint: refusals of all doors, and actions. Parameters and format are Actuator's. */
export function auditEventsEndpoint(
  store: Pick<AuditStore, 'find'>,
  { secrets }: Pick<DoorOptions, 'secrets'>,
): ManagementEndpoint {
  const clean = (value: unknown) => (typeof value === 'string' ? maskText(value, secrets) : value);

  function describe({ at, principal, type, data }: AuditEvent) {
    const shown = Object.entries(data).map(([name, value]) => [name, clean(value)]);
    return {
      timestamp: new Date(at).toISOString(),
      principal: clean(principal),
      type,
      ...(shown.length > 0 && { data: Object.fromEntries(shown) }),
    };
  }

  return {
    id: 'auditevents',
    about: 'Refusals and actions (?principal=&after=2026-01-01T00:00Z&type=).',
    routes: () => ({
      '/auditevents': {
        async get(ctx) {
          const { principal, type, after } = ctx.query;
          const events = await store.find({
            principal: textOf('principal', principal),
            type: textOf('type', type),
            after: timeOf(textOf('after', after)),
            limit: LIMIT,
          });
          return jsonReply(ctx, { events: events.map(describe) });
        },
      },
    }),
  };
}

function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new HttpProblem(400, 'AUDIT_QUERY', `${name} is given more than once`);
}

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  // URLSearchParams decodes the plus sign of a time zone as a space.
  const time = TIME.test(text) ? Date.parse(text.replace(' ', '+')) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new HttpProblem(400, 'AUDIT_QUERY', 'after must be an ISO 8601 time such as 2026-01-01T00:00:00Z');
  }
  return time;
}

interface Action {
  readonly type: string;
  readonly data?: AuditData;
}

type Describe = (ctx: RequestContext, body: unknown) => Action;

/** Describes the writes to audited endpoints; for all others the type is `write`. */
const WRITES: Readonly<Record<string, Describe>> = {
  loggers: ({ param, query }, body) => {
    const { configuredLevel = null, for: forTime = query.for } = Object(body) as Readonly<
      Record<string, unknown>
    >;
    const data = { logger: param, level: String(configuredLevel), for: forTime && String(forTime) };
    return { type: 'LOGGER_LEVEL_CHANGED', data: data as AuditData };
  },
  deliveries: ({ param }, body) => {
    const { action } = Object(body) as { readonly action?: unknown };
    const type = action === 'replay' ? 'DELIVERY_REPLAYED' : 'DELIVERY_DISCARDED';
    return { type, data: { delivery: param } };
  },
  webhookendpoints: ({ param }, body) => {
    const { action } = Object(body) as { readonly action?: unknown };
    const types = { enable: 'WEBHOOK_ENDPOINT_ENABLED', disable: 'WEBHOOK_ENDPOINT_DISABLED' };
    const type = types[action as keyof typeof types] ?? 'PORTAL_OPENED';
    return { type, data: { webhookEndpoint: param } };
  },
  shutdown: () => ({ type: 'SHUTDOWN_REQUESTED' }),
};
/** Describes the reads of endpoints that reveal all data of the process. */
const READS: Readonly<Record<string, Describe>> = {
  heapdump: () => ({ type: 'HEAP_DUMPED' }),
  cpuprofile: () => ({ type: 'CPU_PROFILED' }),
};

/** The event of a successful write below a prefix, for paths that are not `Routes`. */
export function auditedRequest(request: FastifyRequest, endpoint: string, prefix: string) {
  const { method, url, headers, ip, id } = request;
  const [path = ''] = url.slice(prefix.length + 1).split('?', 1);
  return {
    principal: parseBasicAuth(headers.authorization)?.user ?? ANONYMOUS,
    type: 'ENDPOINT_WRITTEN',
    data: { door: 'management', endpoint, method, param: path, client: ip ?? '', request: id },
    isAction: true,
  };
}

/** The routes of an endpoint, which record each operation in the audit log once it has succeeded. */
export function auditedRoutes(routes: Routes, endpoint: string, audit: Audit | undefined): Routes {
  if (audit === undefined) return routes;
  const record = (describe: Describe, ctx: RequestContext, body: unknown) => {
    const { type, data } = describe(ctx, body);
    audit.record({
      principal: parseBasicAuth(ctx.headers.authorization)?.user ?? ANONYMOUS,
      type,
      data: { door: 'management', endpoint, ...data, client: ctx.client, request: ctx.id },
      isAction: true,
    });
  };
  const write: Describe =
    WRITES[endpoint] ??
    (({ method, param }) => ({
      type: 'ENDPOINT_WRITTEN',
      data: { method, param: param === '' ? undefined : param },
    }));
  const wrapWrite = (operation: WriteOperation | undefined): WriteOperation | undefined =>
    operation &&
    (async (ctx, body) => {
      const reply = await operation(ctx, body);
      record(write, ctx, body);
      return reply;
    });
  const wrapRead = (operation: Operation | undefined): Operation | undefined => {
    const read = READS[endpoint];
    if (operation === undefined || read === undefined) return operation;
    return async (ctx) => {
      const reply = await operation(ctx);
      record(read, ctx, undefined);
      return reply;
    };
  };
  const wrap = (operations: Operations): Operations => ({
    ...operations,
    get: wrapRead(operations.get),
    post: wrapWrite(operations.post),
    delete: wrapWrite(operations.delete),
  });
  return Object.fromEntries(Object.entries(routes).map(([path, operations]) => [path, wrap(operations)]));
}
