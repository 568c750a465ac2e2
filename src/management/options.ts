import type { Audit, AuditStore } from '../access/audit.ts';
import type { BasicUser } from '../access/basic.ts';
import type { ShowDetails } from '../config/options/endpoint-id.ts';
import type { InfoPart } from '../config/options/management.ts';
import type { EffectiveOption } from '../config/sources.ts';
import type { SecretTexts } from '../core/redaction.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { Deliveries } from '../inbox/operations.ts';
import type { Sending } from '../sending/sending.ts';
import type { HealthRegistry, Readiness } from '../telemetry/health.ts';
import type { History } from '../telemetry/history.ts';
import type { Loggers, LogTail } from '../telemetry/loggers.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ExchangeLog, RequestTail } from '../telemetry/request-stats.ts';
import type { HealthGroupOptions } from './config.ts';
import type { ConsoleView } from './console/console-view.ts';
import type { CustomEndpoint } from './endpoints/custom.ts';
import type { Build, GitSource } from './endpoints/info.ts';
import type { Environment } from './endpoints/properties.ts';
import type { mappingsEndpoint } from './endpoints/runtime.ts';
import type { AccessRules, valueShower } from './masking.ts';
import type { SpringBootAdminOptions } from './spring-boot-admin.ts';

type ShowValues = Exclude<Parameters<typeof valueShower>[0], 'settings'>;

type Mappings = Parameters<typeof mappingsEndpoint>[1];

/** The endpoints of customers that webhooks are sent to. */
export interface WebhookEndpoints {
  readonly sending: Pick<Sending, 'store' | 'log' | 'change'>;
  /** Makes a link to the portal for a tenant; undefined without a portal. */
  readonly portalLink: ((tenant: string) => MaybePromise<{ readonly url: string }>) | undefined;
}

/** All options of the management door; an embedding program gives some of them. */
export interface DoorOptions {
  /** Such as `/actuator`, or `/` for all paths but the probes. */
  readonly basePath: string;
  /** Ids of exposed endpoints, or `*`; case, `-` and `.` are ignored. */
  readonly include: readonly string[];
  /** Takes precedence over `include`. */
  readonly exclude: readonly string[];
  /** The access to exposed endpoints. Default: each endpoint's own level. */
  readonly access?: AccessRules | undefined;
  readonly showValues: ShowValues;
  /** Secrets to redact in every text. */
  readonly secrets: SecretTexts;
  /** If empty, the door is not secured. */
  readonly users: readonly BasicUser[];
  /** The role that a user needs; undefined: none. */
  readonly role: string | undefined;
  /** Failed log-ins of one address within a minute before it gets 429. Default: 10; 0 for no limit. */
  readonly maxFailedLogins: number;
  readonly build: Build;
  /** The commit of the build; the first request for it calls the function, once. */
  readonly git?: GitSource | undefined;
  /** The parts of /info. Default: build and git. */
  readonly info?: readonly InfoPart[] | undefined;
  readonly health: HealthRegistry;
  /** By name; `liveness` and `readiness` exist unless these replace them. */
  readonly healthGroups?: ReadonlyMap<string, HealthGroupOptions> | undefined;
  /** Who sees the components of a health status. Default: when-authorized. */
  readonly showDetails?: ShowDetails | undefined;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly environment: Environment;
  /** The data of /configprops. Without it the endpoint does not exist; the same holds for those below. */
  readonly configuration?: readonly EffectiveOption[] | undefined;
  /** The loggers that /loggers shows and changes. */
  readonly loggers?: Loggers | undefined;
  /** The data of /httpexchanges. */
  readonly exchanges?: ExchangeLog | undefined;
  /** The data of /auditevents. */
  readonly auditEvents?: Pick<AuditStore, 'find'> | undefined;
  /** Records actions. Default: not recorded. */
  readonly audit?: Audit | undefined;
  /** The deliveries that /deliveries shows and replays. */
  readonly deliveries?: Deliveries | undefined;
  /** The endpoints that webhooks are sent to, which /webhookendpoints shows and changes. */
  readonly webhookEndpoints?: WebhookEndpoints | undefined;
  /** The data of /history. */
  readonly history?: History | undefined;
  /** The data of /requests. */
  readonly requests?: RequestTail | undefined;
  /** The data of /logtail. */
  readonly logTail?: LogTail | undefined;
  /** The data that the console shows in addition to the endpoints. */
  readonly console?: ConsoleView | undefined;
  /** The data of /mappings, by door. */
  readonly mappings?: Mappings | undefined;
  /** Called by POST /shutdown. */
  readonly shutDown?: (() => void) | undefined;
  readonly endpoints: readonly CustomEndpoint[];
  /** The other doors that /openapi describes. */
  readonly apis?: ApiSources | undefined;
  /** The Spring Boot Admin server to register with. Default: none. */
  readonly springBootAdmin?: SpringBootAdminOptions | undefined;
}

/** The options of the management door; for the defaults see withDefaults. */
export type ManagementOptions = { readonly [K in keyof DoorOptions]?: DoorOptions[K] | undefined };

/** Another door that /openapi describes, in parts. */
interface DescribedDoor {
  api(): Promise<readonly DoorApi[]>;
  /** The port on which it listens; undefined while it does not. */
  port(): number | undefined;
}

/** Descriptions of the other doors, for /openapi. */
export interface ApiSources {
  /** By name of the door. */
  readonly doors: ReadonlyMap<string, DescribedDoor>;
  /** The SDL of the GraphQL door's schema, if the door is open. */
  sdl(): string | undefined;
}
