import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HealthResult, HealthStatus } from '../../observability/health/health.ts';
import type { Endpoint } from '../endpoint.ts';
import { healthBody } from '../health/body.ts';
import { detailsShown } from '../health/show-details.ts';
import type { HealthTarget, HealthView } from '../health/view.ts';
import { replyJson } from '../json-reply.ts';
import { NOT_FOUND, refuse } from '../management-errors.ts';
import { mediaTypeFor } from '../media-type.ts';
import { addReadRoute } from '../read-route.ts';

// Nobody else comes past the guard, and where there is none everybody is.
const AUTHORIZED = true;

/** The HTTP status for a health status, as Actuator maps them. */
export function healthCode(status: HealthStatus): 200 | 503 {
  return status === 'DOWN' || status === 'OUT_OF_SERVICE' ? 503 : 200;
}

/** The health endpoint: the whole, its groups, and each of their components. */
export function healthEndpoint(view: HealthView): Endpoint {
  const { mask } = view;
  const groups = [...view.groups.keys()];

  function whole(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { members, showDetails } = view.whole;
    const type = mediaTypeFor(request.headers.accept);
    const shown = detailsShown(showDetails, AUTHORIZED);
    return view.registry.check(members).then((report) => {
      return replyJson(
        reply.code(healthCode(report.status)),
        healthBody(report, { type, shown, mask, groups }),
        type,
      );
    });
  }

  /** The target of a request, unless it is unknown or not to be shown. */
  function targetOf(request: FastifyRequest): HealthTarget | undefined {
    const path = (request.params as { readonly '*': string })['*'].split('/');
    const target = view.resolve(path);
    if (target === undefined || target.path.length === 0) return target;
    return detailsShown(target.showDetails, AUTHORIZED) ? target : undefined;
  }

  function part(request: FastifyRequest, reply: FastifyReply): FastifyReply | Promise<FastifyReply> {
    const target = targetOf(request);
    if (target === undefined) return refuse(NOT_FOUND, request, reply);
    const type = mediaTypeFor(request.headers.accept);
    const shown = detailsShown(target.showDetails, AUTHORIZED);
    return view.registry.check(target.members).then((report) => {
      const found = componentAt(report, target.path);
      if (found === undefined) return refuse(NOT_FOUND, request, reply);
      return replyJson(reply.code(healthCode(found.status)), healthBody(found, { type, shown, mask }), type);
    });
  }

  return {
    id: 'health',
    about: 'Whether everything that this service needs is well.',
    links: [
      { name: 'health', path: '/health', templated: false },
      { name: 'health-path', path: '/health/{*path}', templated: true },
    ],
    addRoutes(scope) {
      addReadRoute(scope, '/health', whole);
      scope.register(async (parts) => {
        // Whatever the method: what is not there cannot be refused in a kinder way.
        parts.addHook('onRequest', (request, reply, done) => {
          if (targetOf(request) === undefined) refuse(NOT_FOUND, request, reply);
          else done();
        });
        addReadRoute(parts, '/health/*', part);
      });
    },
  };
}

function componentAt(whole: HealthResult, path: readonly string[]): HealthResult | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return whole;
  const parts = new Map(Object.entries(whole.components ?? {}));
  const part = parts.get(name);
  return part && componentAt(part, rest);
}
