import type { FastifyInstance } from 'fastify';
import { whenReady } from '../../core/maybe-promise.ts';
import { HEALTH_COMMAND } from '../../telemetry/health.ts';
import { addOperations } from '../operations.ts';
import { cachedHealthReply } from './groups.ts';
import type { HealthView } from './health.ts';

/** The paths of probes, and the health groups that answer there. */
const PROBES = { '/livez': 'liveness', '/readyz': 'readiness' } as const;

/** The paths of the probes, outside the base path. */
export const PROBE_PATHS: readonly string[] = Object.keys(PROBES);

/**
 * Adds the probes of an orchestrator: open, and outside the base path. Their clients never authenticate, so they see
 * more than the status only where everybody does.
 */
export function addProbes(
  scope: FastifyInstance,
  { registry, readiness, groups, secrets }: HealthView,
): void {
  for (const [path, name] of Object.entries(PROBES)) {
    const group = groups.get(name);
    if (group === undefined) continue;
    const check = registry.group(group.members);
    const reply = cachedHealthReply({ shown: group.showDetails === 'always', secrets });
    addOperations(scope, path, {
      get({ headers }) {
        const balances = path === '/readyz' && headers['user-agent'] !== HEALTH_COMMAND;
        if (balances) readiness.probed(performance.now());
        return whenReady(check(), (report) => reply(report, headers.accept));
      },
    });
  }
}
