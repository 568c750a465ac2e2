import pg from 'pg';

/** The connection was lost while a statement was in flight: its outcome is unknown. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
  readonly code = 'CONNECTION_LOST';
}

/** The server has committed a statement, but no synchronous replica has confirmed it. */
export class UnconfirmedError extends Error {
  override readonly name = 'UnconfirmedError';
  readonly code = 'UNCONFIRMED';
}

/**
 * Error classes (postgresql.org/docs/current/errcodes-appendix.html) after which a statement may have been
 * committed: connection, resources, operator intervention, system, internal.
 */
const UNKNOWN = /^(?:08|53|57P|58|XX)/;
const LOCK_NOT_AVAILABLE = '55P03';
/** serialization_failure and deadlock_detected: rolled back, and likely to succeed when retried. */
const TRANSIENT: ReadonlySet<unknown> = new Set(['40001', '40P01']);
/**
 * Errors after which a new connection may work: operator_intervention that ends the connection, idle
 * transaction timeout, read_only_sql_transaction, and lost prepared statements.
 */
const STALE = /^(?:57P|25P03|25006|26000|0A000)/;
/** data_exception, integrity_constraint_violation, program_limit_exceeded: the values are invalid. */
const VALUES = /^(?:22|23|54)/;

/** The SQLSTATE of an error that the server reported; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether a failed statement may have been committed, or was committed but may be lost in a failover. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return UNKNOWN.test(state);
  return error instanceof ConnectionLostError || error instanceof UnconfirmedError;
}

/** Whether the statement was rolled back because of a concurrent one. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(sqlState(error));
}

/** Whether the statement was rolled back after waiting too long for a lock. */
export function isLocked(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE;
}

/** Whether the connection is unusable after this error. */
export function isStale(error: unknown): boolean {
  return STALE.test(sqlState(error) ?? '');
}

/** Whether a statement failed because of its values. */
export function isValueError(error: unknown): boolean {
  return VALUES.test(sqlState(error) ?? '');
}

/** The message of an error, or its code: the AggregateError of a failed connection has no message. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  return error.message || String(code ?? error.name);
}
