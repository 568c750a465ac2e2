import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../observability/readiness.ts';
import { jsonBytes, replyJson } from './json-reply.ts';
import { addReadRoute } from './read-route.ts';

export const PROBE_PATHS = ['/livez', '/readyz'] as const;

const UP = jsonBytes({ status: 'UP' });
const OUT_OF_SERVICE = jsonBytes({ status: 'OUT_OF_SERVICE' });

/**
 * Adds the probes of an orchestrator: open, and outside the base path. Being alive asks nobody else,
 * or an outage of the database would get every replica restarted.
 */
export function addProbes(scope: FastifyInstance, readiness: Readiness): void {
  const [live, ready] = PROBE_PATHS;
  addReadRoute(scope, live, (_request, reply) => replyJson(reply, UP));
  addReadRoute(scope, ready, (_request, reply) =>
    readiness.accepting ? replyJson(reply, UP) : replyJson(reply.code(503), OUT_OF_SERVICE),
  );
}
