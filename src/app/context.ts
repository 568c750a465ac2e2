import type { BodyBudget, ErrorFormat, Listener } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Audit } from '../access/audit.ts';
import type { AccessPolicy } from '../access/policy.ts';
import type { Door, DoorName } from '../config/options/options.ts';
import type { KnownSecrets } from '../core/redaction.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { ListedRoute } from '../http/routes.ts';
import type { Events } from '../inbox/events.ts';
import type { PortalLinks } from '../portal/links.ts';
import type { RelationFeed } from '../relations/events.ts';
import type { RowStores } from '../relations/rows/rows.ts';
import type { SendingApi } from '../sending/api.ts';
import type { Sending } from '../sending/sending.ts';
import type { ScheduledBackups } from '../sql/backup/scheduled.ts';
import type { Database } from '../sql/database.ts';
import type { Readiness } from '../telemetry/health.ts';
import type { Loggers, LogTail } from '../telemetry/loggers.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { RequestStats, RequestTail } from '../telemetry/request-stats.ts';
import type { Config } from './load-config.ts';
import type { openTracing } from './telemetry.ts';

type Tracing = NonNullable<ReturnType<typeof openTracing>>;

export interface OpenDoor extends Listener {
  routes(): readonly ListedRoute[];
  readonly stats: RequestStats;
  /** Builds the door with all of its plugins. Rejects with the error that prevents it. */
  build(): Promise<void>;
}

/** What sends events to the endpoints of customers. */
export interface OpenSending {
  readonly sending: Sending;
  readonly api: SendingApi;
  readonly links: PortalLinks;
  /** Makes a link to the portal for a tenant from the body of a request; undefined without a portal. */
  readonly linkOf: ((tenant: string, body: unknown) => Promise<{ readonly url: string }>) | undefined;
}

/** API descriptions of the doors, for the management door; loaded on request. */
interface Apis {
  readonly doors: Map<Door, () => Promise<readonly DoorApi[]>>;
  sdl?: () => string;
}

/** The context of wiring the doors. Only src/app sees it; it passes each module the few things it uses. */
export interface AppContext {
  readonly config: Config;
  /** Secrets to redact; code that reads further secrets adds them. */
  readonly secrets: KnownSecrets;
  /** The root of all loggers; `loggers` has one for each part of the service. */
  readonly log: Logger;
  readonly loggers: Loggers;
  /** The last replies of all doors. */
  readonly requestTail: RequestTail;
  /** The last entries of the log. */
  readonly logTail: LogTail;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly readiness: Readiness;
  /** The access policy of REST and GraphQL; undefined if the configuration restricts neither. */
  readonly api: AccessPolicy | undefined;
  /** The database, for a door that needs it. Throws when none is open. */
  database(): Database;
  /** The database, if one of the open doors needs it. */
  openedDatabase(): Database | undefined;
  /** The rows of the declared relations; empty without any. */
  readonly relations: RowStores;
  /** The changes of the relations that record them; undefined if none does. */
  readonly relationFeed: RelationFeed | undefined;
  /** Sends events to the endpoints of customers; undefined if the configuration does not. */
  readonly sending: OpenSending | undefined;
  /** Records refusals and actions; undefined if the service keeps no audit log. */
  readonly audit: Audit | undefined;
  /** Records spans; undefined if no SDK is registered. */
  readonly tracing: Tracing | undefined;
  /** The backups that the configuration schedules, if any. */
  readonly backups: ScheduledBackups | undefined;
  /** The descriptions that the management door serves; each door adds its own. */
  readonly apis: Apis;
  /**
   * Adds a listener for a door on its configured port; returns its Fastify instance. The door gets its own
   * budget for bodies unless one is given.
   */
  listener(door: DoorName, errors: ErrorFormat, bodyBudget?: BodyBudget): FastifyInstance;
  /** The doors that have a listener so far. */
  readonly doors: ReadonlyMap<DoorName, OpenDoor>;
  /** Requests the same stop as a signal. */
  requestStop(): void;
  /** Disposes of a resource once all doors are closed; returns it. */
  onStop<T extends Disposable | AsyncDisposable>(resource: T): T;
}
