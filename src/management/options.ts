import type { EffectiveOption } from '../config/effective-options.ts';
import { comparableEndpointId, takenEndpoints } from '../config/options/endpoint-id.ts';
import type { ShowDetails } from '../config/options/health-names.ts';
import type { InfoPart } from '../config/options/info-parts.ts';
import { endpointSchema } from '../config/schema/custom-endpoint.ts';
import type { HealthGroupOptions } from '../config/schema/health-code.ts';
import { check, problemLines } from '../config/schema/read-object.ts';
import { quote } from '../core/quote.ts';
import type { SecretTexts } from '../core/redaction.ts';
import type { BasicUser } from '../http/auth/basic-auth.ts';
import type { ExchangeLog } from '../http/exchange-log.ts';
import type { Readiness } from '../observability/health/readiness.ts';
import type { HealthRegistry } from '../observability/health/registry.ts';
import type { Loggers } from '../observability/log/loggers.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import type { AccessRules } from './access/access.ts';
import type { ShowValues } from './access/masking.ts';
import type { CustomEndpoint } from './endpoints/custom.ts';
import type { DeliveriesView } from './endpoints/deliveries.ts';
import type { Build } from './endpoints/info.ts';
import type { Mappings } from './endpoints/mappings.ts';
import type { Environment } from './environment.ts';
import { PROBE_PATHS } from './health/probes.ts';
import type { GitSource } from './info/git-info.ts';
import { ManagementOptionsError } from './options-error.ts';
import type { SpringBootAdminOptions } from './spring-boot-admin/spring-boot-admin.ts';

export { ManagementOptionsError } from './options-error.ts';

/** What the management door is and shows, all of it: who registers the door gives less. */
export interface DoorOptions {
  /** Such as `/actuator`, or `/` for everything but the probes. */
  readonly basePath: string;
  /** The names of exposed endpoints, or `*`; case, `-` and `.` do not count. */
  readonly include: readonly string[];
  /** Wins over `include`. */
  readonly exclude: readonly string[];
  /** What may be done with the exposed endpoints; each endpoint's own level when absent. */
  readonly access?: AccessRules | undefined;
  readonly showValues: ShowValues;
  /** What is shown nowhere, whatever it stands in; the passwords of `users` when absent. */
  readonly secrets?: SecretTexts | undefined;
  /** Empty: the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; undefined: any user will do. */
  readonly role: string | undefined;
  /** Failed log-ins of one address within a minute, after which it gets 429; 10 when absent, 0 for no limit. */
  readonly maxFailedLogins?: number | undefined;
  readonly build: Build;
  /** The commit that it was built from; a function is called once, when somebody asks for it. */
  readonly git?: GitSource | undefined;
  /** The parts of /info; build and git when absent. */
  readonly info?: readonly InfoPart[] | undefined;
  readonly health: HealthRegistry;
  /** By name, beside `liveness` and `readiness`, or in their place. */
  readonly healthGroups?: ReadonlyMap<string, HealthGroupOptions> | undefined;
  /** Who sees what a health status is made of; when-authorized when absent. */
  readonly showDetails?: ShowDetails | undefined;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly environment: Environment;
  /** What /configprops shows; without it there is no such endpoint, and so with all that follow. */
  readonly configuration?: readonly EffectiveOption[] | undefined;
  /** What /loggers shows and changes. */
  readonly loggers?: Loggers | undefined;
  /** What /httpexchanges shows. */
  readonly exchanges?: ExchangeLog | undefined;
  /** What /deliveries shows, and has handled again. */
  readonly deliveries?: DeliveriesView | undefined;
  /** What /mappings shows, by the name of a part of the service. */
  readonly mappings?: Mappings | undefined;
  /** What POST /shutdown does. */
  readonly shutDown?: (() => void) | undefined;
  readonly endpoints: readonly CustomEndpoint[];
  /** The Spring Boot Admin server to register with; none when absent. */
  readonly springBootAdmin?: SpringBootAdminOptions | undefined;
}

/** What the management door is and shows; everything has a default, see withDefaults. */
export type ManagementOptions = { readonly [K in keyof DoorOptions]?: DoorOptions[K] | undefined };

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
  const taken = new Set([...takenEndpoints, ...probes].map(comparableEndpointId));
  const problems = endpoints.flatMap(({ id, path, query, read, write, delete: remove }, index) => {
    const comparable = comparableEndpointId(String(id));
    const clash = taken.has(comparable) ? [`endpoints[${index}].id ${quote(id)} is taken; rename it`] : [];
    taken.add(comparable);
    // Field by field: an instance of a class has its operations from its prototype.
    const { issues } = check(endpointSchema, { id, path, query, read, write, delete: remove });
    return [...clash, ...problemLines(issues, `endpoints[${index}]`)];
  });
  if (problems.length > 0) throw new ManagementOptionsError(problems.join('\n'));
}
