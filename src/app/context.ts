import type { BodyBudget, ErrorFormat, Listener } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Audit } from '../access/audit.ts';
import type { AccessPolicy } from '../access/policy.ts';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/options.ts';
import type { KnownSecrets } from '../core/redaction.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { ListedRoute } from '../http/records.ts';
import type { Events } from '../inbox/events.ts';
import type { ScheduledBackups } from '../sql/backup/scheduled.ts';
import type { Database } from '../sql/database.ts';
import type { Readiness } from '../telemetry/health.ts';
import type { RequestTail, Traffic } from '../telemetry/history.ts';
import type { Loggers, LogTail } from '../telemetry/loggers.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Tracing } from './telemetry.ts';

/** The listener of a door, with the routes that it serves. */
export interface OpenDoor extends Listener {
  routes(): readonly ListedRoute[];
  readonly traffic: Traffic;
  /** Builds the door with all of its plugins; fails with what keeps it from being built. */
  build(): Promise<void>;
}

/** How the doors are described, for the management door. Descriptions are loaded when they are asked for. */
interface Apis {
  readonly doors: Map<Door, () => Promise<DoorApi>>;
  sdl?: () => string;
}

/** What the doors are wired from. Only the wiring sees it; a room gets the few things that it uses. */
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
  /** What lets requests into REST and GraphQL; undefined where everybody may come in. */
  readonly api: AccessPolicy | undefined;
  /** The database, for a door that is known to need it. */
  database(): Database;
  /** The database, if one of the open doors needs it. */
  openedDatabase(): Database | undefined;
  /** Where refusals and actions are recorded, if they are. */
  readonly audit: Audit | undefined;
  /** Records spans, if an SDK is registered. */
  readonly tracing: Tracing | undefined;
  /** The backups that the configuration schedules, if it does. */
  readonly backups: ScheduledBackups | undefined;
  /** What the management door describes of the others; each door adds itself. */
  readonly apis: Apis;
  /** Adds a listener for a door on its configured port; returns its Fastify instance. Bodies have a budget of their own unless one is given. */
  listener(door: Door, errors: ErrorFormat, bodyBudget?: BodyBudget): FastifyInstance;
  /** The doors that have a listener so far. */
  readonly doors: ReadonlyMap<Door, OpenDoor>;
  /** Requests the stop that a signal triggers too. */
  requestStop(): void;
  /** Disposes of a resource once all doors are closed; returns it. */
  onStop<T extends Disposable | AsyncDisposable>(resource: T): T;
}
