import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../config/load.ts';
import type { Door } from '../config/options/door.ts';
import type { KnownSecrets } from '../core/redaction.ts';
import type { Database } from '../database/database.ts';
import type { ErrorFormat } from '../http/error-format.ts';
import type { ListedRoute } from '../http/route-list.ts';
import type { Events } from '../inbox/inbox-events.ts';
import type { Readiness } from '../observability/health/readiness.ts';
import type { Loggers } from '../observability/log/loggers.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import type { UserSource } from '../users/user-source.ts';
import type { UserStore } from '../users/user-store.ts';

/** A door as those see it that look at all of them. */
export interface OpenDoor {
  readonly app: FastifyInstance;
  routes(): readonly ListedRoute[];
}

/** What the doors are wired from. Only the wiring sees it; a room gets the few things that it uses. */
export interface Parts {
  readonly config: Config;
  /** What may be shown nowhere; whoever reads more secrets adds them. */
  readonly secrets: KnownSecrets;
  /** The root of all loggers; `loggers` has one for each part of the service. */
  readonly log: Logger;
  readonly loggers: Loggers;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly readiness: Readiness;
  /** The database, for a door that is known to need it. */
  database(): Database;
  /** The database, if one of the open doors needs it. */
  openedDatabase(): Database | undefined;
  /** The users of the database; `newUsers` tells of each that is created, whichever door created it. */
  storedUsers(): UserStore;
  readonly newUsers: UserSource;
  /** Adds a listener for a door on its configured port and gives its Fastify instance. */
  listener(door: Door, errors: ErrorFormat): FastifyInstance;
  /** The doors that have a listener up to now. */
  readonly doors: ReadonlyMap<Door, OpenDoor>;
  /** Asks for the stop that a signal brings too. */
  requestStop(): void;
  /** Has a resource disposed of once all doors are closed; returns it. */
  onStop<T extends Disposable | AsyncDisposable>(resource: T): T;
}
