import { DeliveryIds, OWN_SOURCES, TENANT_SOURCE } from '../inbox/delivery.ts';
import { ENQUEUE_IN_POSTGRES, storable } from './postgres/text.ts';

/** A delivery that a program enqueues in its own transaction. */
export interface DeliveryToEnqueue {
  readonly event: string;
  /** The handler's data: any JSON value. */
  readonly data?: unknown;
  /** Deliveries with the same key are handled once. Default: none. */
  readonly dedupKey?: string | undefined;
  /** The tenant whose endpoints get it as an event, instead of a handler. Default: none. */
  readonly tenant?: string | undefined;
  /** The channels of an event for a tenant. */
  readonly channels?: readonly string[] | undefined;
}

/** A connection to the SQLite file, from node:sqlite or better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): { run(...values: (string | number | null | Uint8Array)[]): unknown };
}

/** A PostgreSQL connection: a client of pg. A pool would run the statement outside the transaction. */
export interface PostgresClient {
  query(text: string, values: (string | number | null | Uint8Array)[]): Promise<unknown>;
}

/** A statement that enqueues a delivery, for any PostgreSQL driver. */
export interface EnqueueStatement {
  /** The id of the delivery. */
  readonly id: string;
  readonly text: string;
  readonly values: (string | number | null | Uint8Array)[];
}

const INSERT = `
  INSERT INTO enqueued (id, source, event, body, received_at, dedup_key) VALUES (?, ?, ?, ?, ?, ?)`;

const ids = new DeliveryIds();

/**
 * Enqueues a delivery in the transaction that is open on the caller's connection. A service handles it after
 * the commit; a rollback discards it. Returns the id of the delivery; on PostgreSQL, a promise of it.
 */
export function enqueue(connection: SqliteConnection, delivery: DeliveryToEnqueue): string;
export function enqueue(connection: PostgresClient, delivery: DeliveryToEnqueue): Promise<string>;
export function enqueue(
  connection: SqliteConnection | PostgresClient,
  delivery: DeliveryToEnqueue,
): string | Promise<string> {
  if ('query' in connection) {
    const { id, text, values } = enqueueStatement(delivery);
    return connection.query(text, values).then(() => id);
  }
  const { id, source, event, body, receivedAt, dedupKey } = rowOf(delivery);
  connection.prepare(INSERT).run(id, source, event, body, receivedAt, dedupKey);
  return id;
}

/** The statement that `enqueue` runs on PostgreSQL. It also notifies the services at the commit. */
export function enqueueStatement(delivery: DeliveryToEnqueue): EnqueueStatement {
  const { id, source, event, body, receivedAt, dedupKey } = rowOf(delivery);
  const values = [id, source, storable(event), body, receivedAt, storable(dedupKey)];
  return { id, text: ENQUEUE_IN_POSTGRES, values };
}

function rowOf({ event, data, dedupKey, tenant, channels }: DeliveryToEnqueue) {
  const receivedAt = Date.now();
  const body = Buffer.from(JSON.stringify({ event, data, channels }));
  const source = tenant === undefined ? OWN_SOURCES.enqueue : `${TENANT_SOURCE}${tenant}`;
  return { id: ids.next(receivedAt), source, event, body, receivedAt, dedupKey: dedupKey ?? null };
}
