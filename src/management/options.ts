import type { ExchangeLog } from '@portico/transport';
import type { Audit, AuditStore } from '../access/audit.ts';
import type { BasicUser } from '../access/basic.ts';
import { type ShowDetails, takenEndpoints } from '../config/options/endpoint-id.ts';
import type { InfoPart } from '../config/options/management.ts';
import type { EffectiveOption } from '../config/options-table.ts';
import { type HealthGroupOptions, readEndpoints } from '../config/schema/endpoints.ts';
import type { SecretTexts } from '../core/redaction.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { HealthRegistry, Readiness } from '../telemetry/health.ts';
import type { History, RequestTail } from '../telemetry/history.ts';
import type { Loggers, LogTail } from '../telemetry/loggers.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ConsoleView } from './console/console-view.ts';
import type { CustomEndpoint } from './endpoints/custom.ts';
import type { DeliveriesView } from './endpoints/deliveries.ts';
import { PROBE_PATHS } from './endpoints/health.ts';
import type { Build, GitSource } from './endpoints/info.ts';
import type { Mappings } from './endpoints/runtime.ts';
import { type Environment, ManagementOptionsError } from './environment.ts';
import type { AccessRules, ShowValues } from './masking.ts';
import type { SpringBootAdminOptions } from './spring-boot-admin.ts';

/** All options of the management door; the program that registers it gives some of them. */
export interface DoorOptions {
  /** Such as `/actuator`, or `/` for everything but the probes. */
  readonly basePath: string;
  /** The names of exposed endpoints, or `*`; case, `-` and `.` do not count. */
  readonly include: readonly string[];
  /** Wins over `include`. */
  readonly exclude: readonly string[];
  /** The access to exposed endpoints; default each endpoint's own. */
  readonly access?: AccessRules | undefined;
  readonly showValues: ShowValues;
  /** Secrets to redact in every text. */
  readonly secrets: SecretTexts;
  /** Without any the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; none when undefined. */
  readonly role: string | undefined;
  /** Failed log-ins of one address within a minute after which it gets 429; default 10, 0 for no limit. */
  readonly maxFailedLogins?: number | undefined;
  readonly build: Build;
  /** The commit that it was built from; a function is called once, by the first request for it. */
  readonly git?: GitSource | undefined;
  /** The parts of /info; default build and git. */
  readonly info?: readonly InfoPart[] | undefined;
  readonly health: HealthRegistry;
  /** By name; `liveness` and `readiness` exist unless they are replaced. */
  readonly healthGroups?: ReadonlyMap<string, HealthGroupOptions> | undefined;
  /** Who sees the components of a health status; default when-authorized. */
  readonly showDetails?: ShowDetails | undefined;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly environment: Environment;
  /** What /configprops shows. Without it there is no such endpoint; the same holds for those below. */
  readonly configuration?: readonly EffectiveOption[] | undefined;
  /** What /loggers shows and changes. */
  readonly loggers?: Loggers | undefined;
  /** What /httpexchanges shows. */
  readonly exchanges?: ExchangeLog | undefined;
  /** What /auditevents shows. */
  readonly auditEvents?: Pick<AuditStore, 'find'> | undefined;
  /** Where actions are recorded; default nowhere. */
  readonly audit?: Audit | undefined;
  /** What /deliveries shows and replays. */
  readonly deliveries?: DeliveriesView | undefined;
  /** What /history shows. */
  readonly history?: History | undefined;
  /** What /requests shows. */
  readonly requests?: RequestTail | undefined;
  /** What /logtail shows. */
  readonly logTail?: LogTail | undefined;
  /** What the console shows beside the endpoints. */
  readonly console?: ConsoleView | undefined;
  /** What /mappings shows, by door. */
  readonly mappings?: Mappings | undefined;
  /** What POST /shutdown calls. */
  readonly shutDown?: (() => void) | undefined;
  readonly endpoints: readonly CustomEndpoint[];
  /** What /openapi describes beside this door. */
  readonly apis?: ApiSources | undefined;
  /** The Spring Boot Admin server to register with; default none. */
  readonly springBootAdmin?: SpringBootAdminOptions | undefined;
}

/** The options of the management door; for the defaults see withDefaults. */
export type ManagementOptions = { readonly [K in keyof DoorOptions]?: DoorOptions[K] | undefined };

const BASE_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/;

/** The base path as a route prefix: without a trailing slash, empty for `/`. */
export function basePrefix(basePath: string): string {
  const prefix = basePath.replace(/\/+$/, '');
  if (basePath === '' || (prefix !== '' && !BASE_PATH.test(prefix))) {
    throw new ManagementOptionsError(
      `The base path ${JSON.stringify(basePath)} is no plain path. Use one like /actuator, or /.`,
    );
  }
  return prefix;
}

/** Refuses custom endpoints that cannot be reached, or have the id of another one. */
export function checkCustomEndpoints(endpoints: readonly CustomEndpoint[], prefix: string): void {
  const probes = prefix === '' ? PROBE_PATHS.map((path) => path.slice(1)) : [];
  // Field by field: an instance of a class has its operations from its prototype.
  const value = endpoints.map(({ id, path, query, read, write, delete: remove }) => {
    return { id, path, query, read, write, delete: remove };
  });
  const problems: string[] = [];
  readEndpoints({ value, path: 'endpoints' }, problems, [...takenEndpoints, ...probes]);
  if (problems.length > 0) throw new ManagementOptionsError(problems.join('\n'));
}

/** Another door that /openapi describes. */
interface DescribedDoor {
  api(): Promise<DoorApi>;
  /** The port that it listens on; undefined while it does not. */
  port(): number | undefined;
}

/** What /openapi describes beside the management door. */
export interface ApiSources {
  /** By the name of the door. */
  readonly doors: ReadonlyMap<string, DescribedDoor>;
  /** The schema of the GraphQL door in its definition language, if the door is open. */
  sdl(): string | undefined;
}
