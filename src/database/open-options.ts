import type { DatabaseObserver } from './observer.ts';
import type { Replica } from './replica.ts';

/** How a database is opened. */
export interface OpenOptions {
  /** Watches it at work. */
  readonly observer?: DatabaseObserver;
  /** Where users may be read too; for PostgreSQL. */
  readonly replica?: Replica | undefined;
  /** Whether the schema is brought up to date; default true. If not, it must be up to date already. */
  readonly mayMigrate?: boolean;
}
