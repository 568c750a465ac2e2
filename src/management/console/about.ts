import { hostname } from 'node:os';
import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { Exchange } from '../../http/endpoint.ts';
import type { FastifyExchange } from '../../http/fastify-exchange.ts';
import { isExposed } from '../access/exposure.ts';
import { principalOf } from '../access/guard.ts';
import type { Operations } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import { jsonReply } from '../replies.ts';
import { isClosed } from './console-access.ts';
import { mayAct } from './console-guard.ts';
import type { ConsoleProcess } from './console-view.ts';

export interface AboutOptions
  extends Pick<DoorOptions, 'build' | 'users' | 'console' | 'include' | 'exclude' | 'access'> {
  readonly readOnly: boolean;
  /** The ids of the endpoints that the console shows. */
  readonly endpoints: readonly string[];
}

/** What the console says of the service, of its process, and of what its reader may do. */
export function aboutOperations(options: AboutOptions): Operations {
  const { build, users, console: view = {}, readOnly, endpoints } = options;
  const { doors = () => [], processes, database, role } = view;
  const reference = isExposed('docs', options);
  const all = [
    ...endpoints,
    ...(view.sender === undefined ? [] : ['test-deliveries']),
    ...(view.users === undefined ? [] : ['users']),
  ];
  const startedAt = new Date(performance.timeOrigin).toISOString();

  function about(exchange: Exchange, others: readonly ConsoleProcess[]) {
    const { request } = exchange as FastifyExchange;
    const user = principalOf(request)?.name;
    return {
      name: build.name,
      version: build.version,
      process: { host: hostname(), pid: process.pid, node: process.version, startedAt },
      processes: others.map(({ name, since }) => ({ name, since: new Date(since).toISOString() })),
      doors: doors(),
      database: database ?? null,
      secured: users.length > 0,
      user: user ?? null,
      actions: !readOnly && mayAct(request, role),
      reference,
      endpoints: all.filter((id) => !isClosed(id, view)),
      closed: Object.fromEntries(all.filter((id) => isClosed(id, view)).map((id) => [id, view.closed])),
    };
  }

  return {
    fast: false,
    get: (exchange) => {
      const others: MaybePromise<readonly ConsoleProcess[]> = processes?.() ?? [];
      return whenReady(others, (known) => jsonReply(exchange, about(exchange, known)));
    },
  };
}
