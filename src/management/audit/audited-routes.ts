import { parseBasicAuth } from '../../http/auth/basic-auth.ts';
import type { Exchange } from '../../http/endpoint.ts';
import { ANONYMOUS, type Audit, type AuditData } from '../../observability/audit/audit.ts';
import type { Operation, Operations, Routes, WriteOperation } from '../operations.ts';

interface Action {
  readonly type: string;
  readonly data?: AuditData;
}

type Describe = (exchange: Exchange, body: unknown) => Action;

/** What a write to these endpoints does; to all others it is a write. */
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
  shutdown: () => ({ type: 'SHUTDOWN_REQUESTED' }),
};
/** What a read of these endpoints does: they show everything that the process knows. */
const READS: Readonly<Record<string, Describe>> = {
  heapdump: () => ({ type: 'HEAP_DUMPED' }),
  cpuprofile: () => ({ type: 'CPU_PROFILED' }),
};

/** The routes of an endpoint, with what is done by them recorded once it has succeeded. */
export function auditedRoutes(routes: Routes, endpoint: string, audit: Audit | undefined): Routes {
  if (audit === undefined) return routes;
  const record = (describe: Describe, exchange: Exchange, body: unknown) => {
    const { type, data } = describe(exchange, body);
    audit.record({
      principal: parseBasicAuth(exchange.headers.authorization)?.user ?? ANONYMOUS,
      type,
      data: { door: 'management', endpoint, ...data, client: exchange.client, request: exchange.id },
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
    (async (exchange, body) => {
      const reply = await operation(exchange, body);
      record(write, exchange, body);
      return reply;
    });
  const wrapRead = (operation: Operation | undefined): Operation | undefined => {
    const read = READS[endpoint];
    if (operation === undefined || read === undefined) return operation;
    return async (exchange) => {
      const reply = await operation(exchange);
      record(read, exchange, undefined);
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
