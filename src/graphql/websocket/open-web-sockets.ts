import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bodyBudgetOf } from '../../http/body/body-budget.ts';
import type { ReplyBudget } from '../../http/reply/reply-budget.ts';
import { offeredUpgrade, takeUpgrades } from '../../http/server/upgrades.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import type { RunOptions } from '../run-request.ts';
import { WebSockets, type WebSocketsOptions } from './web-sockets.ts';

/** The WebSockets of an endpoint. */
export interface OpenWebSockets {
  /** Makes the connection of a request a WebSocket; false for a request that asks for none. Throws HttpProblem. */
  accept(request: FastifyRequest, reply: FastifyReply): boolean;
  /** Completes what runs and closes all of them. */
  end(): void;
}

/** Has the endpoint at `path` take WebSockets, until the application is closed; undefined where there may be none. */
export function openWebSockets(
  app: FastifyInstance,
  options: WebSocketsOptions & { readonly path: string; readonly metrics: Metrics | undefined },
  run: RunOptions,
  replies: ReplyBudget,
): OpenWebSockets | undefined {
  if (options.maxWebSockets === 0) return undefined;
  const sockets = new WebSockets(options, run, { replies, bodies: bodyBudgetOf(app) });
  const uri = app.prefix + options.path;
  const route = uri.split('/');
  const stop = takeUpgrades(app.server, (path) => matches(route, path.split('/')));
  if (options.metrics !== undefined) meter(options.metrics, uri, sockets);
  app.addHook('onClose', (_app, done) => {
    stop();
    done();
  });
  return {
    accept(request, reply) {
      const upgrade = offeredUpgrade(request.raw);
      if (upgrade === undefined) return false;
      sockets.accept(upgrade, request, reply);
      return true;
    },
    end: () => sockets.end(),
  };
}

function meter(metrics: Metrics, uri: string, sockets: WebSockets): void {
  const gauge = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { description, tags: { uri } }, read);
  gauge('graphql.websockets', 'Open WebSockets, by route', () => sockets.open);
  gauge(
    'graphql.websocket.operations',
    'Operations in progress over WebSockets, by route',
    () => sockets.operations,
  );
}

/** Whether a path is one of a route, whose prefix may have parameters. */
function matches(route: readonly string[], path: readonly string[]): boolean {
  return (
    route.length === path.length && route.every((each, index) => each === path[index] || each.startsWith(':'))
  );
}
