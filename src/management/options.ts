import { builtInEndpoints, comparableEndpointId, endpointIdPattern } from '../config/endpoint-id.ts';
import type { BasicUser } from '../http/basic-auth.ts';
import type { HealthRegistry } from '../observability/health-registry.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Readiness } from '../observability/readiness.ts';
import type { CustomEndpoint } from './custom-endpoint.ts';
import type { Environment } from './env.ts';
import type { Build } from './info.ts';
import type { ShowValues } from './masking.ts';
import { PROBE_PATHS } from './probes.ts';

/** What the management door is and shows. */
export interface ManagementOptions {
  /** Such as `/actuator`, or `/` for everything but the probes. */
  readonly basePath: string;
  /** The names of exposed endpoints, or `*`; case, `-` and `.` do not count. */
  readonly include: readonly string[];
  /** Wins over `include`. */
  readonly exclude: readonly string[];
  readonly showValues: ShowValues;
  /** Empty: the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; undefined: any user will do. */
  readonly role: string | undefined;
  readonly build: Build;
  readonly health: HealthRegistry;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly environment: Environment;
  readonly endpoints: readonly CustomEndpoint[];
}

/** The management door cannot be built like this; the message says what to change. */
export class ManagementOptionsError extends Error {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}

const BASE_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/;

/** The base path as a route prefix: without a slash at the end, empty for `/`. */
export function basePrefix(basePath: string): string {
  const prefix = basePath.replace(/\/+$/, '');
  if (basePath === '' || (prefix !== '' && !BASE_PATH.test(prefix))) {
    throw new ManagementOptionsError(
      `The base path ${JSON.stringify(basePath)} is no plain path. Use one like /actuator, or /.`,
    );
  }
  return prefix;
}

/** Refuses custom endpoints that could not be reached, or not be told from another one. */
export function checkCustomEndpoints(endpoints: readonly CustomEndpoint[], prefix: string): void {
  const probes = prefix === '' ? PROBE_PATHS.map((path) => path.slice(1)) : [];
  const taken = new Set([...builtInEndpoints, ...probes].map(comparableEndpointId));
  for (const { id } of endpoints) {
    const comparable = comparableEndpointId(id);
    if (!endpointIdPattern.test(id) || taken.has(comparable)) {
      throw new ManagementOptionsError(
        `The endpoint id ${JSON.stringify(id)} is taken, or not of letters, digits, "." and "-" after a lower-case letter. Choose another.`,
      );
    }
    taken.add(comparable);
  }
}
