import type { FastifyInstance } from 'fastify';
import { healthCode } from '../endpoints/health.ts';
import { replyJson } from '../json-reply.ts';
import { mediaTypeFor } from '../media-type.ts';
import { addReadRoute } from '../read-route.ts';
import { healthBody } from './body.ts';
import { detailsShown } from './show-details.ts';
import type { HealthView } from './view.ts';

/** The paths of probes, and the health groups that answer there. */
const PROBES = { '/livez': 'liveness', '/readyz': 'readiness' } as const;

export const PROBE_PATHS: readonly string[] = Object.keys(PROBES);

/**
 * Adds the probes of an orchestrator: open, and outside the base path. Who asks there never said who it is,
 * so it sees more than the status only where everybody does.
 */
export function addProbes(scope: FastifyInstance, { registry, groups, mask }: HealthView): void {
  for (const [path, name] of Object.entries(PROBES)) {
    const group = groups.get(name);
    if (group === undefined) continue;
    const shown = detailsShown(group.showDetails, false);
    addReadRoute(scope, path, (request, reply) =>
      registry.check(group.members).then((report) => {
        const type = mediaTypeFor(request.headers.accept);
        return replyJson(
          reply.code(healthCode(report.status)),
          healthBody(report, { type, shown, mask }),
          type,
        );
      }),
    );
  }
}
