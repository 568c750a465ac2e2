// The package entry `portico/database`.
export { DatabaseOpenError, StoreUnavailableError } from '../core/errors.ts';
export type { Database } from './database.ts';
export {
  type DeliveryToEnqueue,
  type EnqueueStatement,
  enqueue,
  enqueueStatement,
  type PostgresClient,
  type SqliteConnection,
} from './enqueue.ts';
export { openDatabase } from './open.ts';
