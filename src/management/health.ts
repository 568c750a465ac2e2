import type { HealthReport, HealthResult } from '../observability/health.ts';
import type { HealthRegistry } from '../observability/health-registry.ts';
import type { Endpoint } from './endpoint.ts';
import { jsonBytes, replyJson } from './json-reply.ts';
import { maskSecrets } from './masking.ts';
import { type MediaType, mediaTypeFor } from './media-type.ts';
import { addReadRoute } from './read-route.ts';

/**
 * The health endpoint: DOWN is 503. Details are for those who are authorised; nobody else comes
 * past the guard, and where there is none everybody is.
 */
export function healthEndpoint(registry: HealthRegistry): Endpoint {
  return {
    id: 'health',
    links: [{ name: 'health', path: '/health', templated: false }],
    addRoutes(scope) {
      addReadRoute(scope, '/health', (request, reply) => {
        const type = mediaTypeFor(request.headers.accept);
        return registry
          .check()
          .then((report) =>
            replyJson(reply.code(report.status === 'UP' ? 200 : 503), renderHealth(report, type), type),
          );
      });
    },
  };
}

/** contract 2.4; version 2 of the media type calls the components `details`. */
export function renderHealth({ status, components }: HealthReport, type: MediaType): Buffer {
  const names = Object.keys(components);
  if (names.length === 0) return jsonBytes({ status });
  const key = type === 'application/vnd.spring-boot.actuator.v2+json' ? 'details' : 'components';
  const members = names.map((name) => `${JSON.stringify(name)}:${renderResult(components[name])}`);
  return Buffer.from(`{"status":"${status}","${key}":{${members.join(',')}}}`);
}

/** Details come from anybody's check: what JSON cannot hold must not take the other components along. */
function renderResult(result: HealthResult | undefined): string {
  const { status, details } = result ?? { status: 'DOWN' };
  try {
    if (status === 'UP') return JSON.stringify({ status, details });
    // Messages of drivers like to quote the URL they could not connect to.
    return JSON.stringify({ status, details }, (_key, value: unknown) =>
      typeof value === 'string' ? maskSecrets(value) : value,
    );
  } catch {
    return JSON.stringify({ status, details: { error: 'the details cannot be written as JSON' } });
  }
}
