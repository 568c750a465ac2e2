import pg from 'pg';

/** The connection ended, or stopped answering, while a statement was on its way: nobody knows what became of it. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
  readonly code = 'CONNECTION_LOST';
}

/** The server has committed a statement, but no replica has confirmed that it has it too. */
export class UnconfirmedError extends Error {
  override readonly name = 'UnconfirmedError';
  readonly code = 'UNCONFIRMED';
}

/**
 * Classes of errors (postgresql.org/docs/current/errcodes-appendix.html) after which a statement may have been
 * committed all the same: connection, resources, operator intervention, system, internal.
 */
const UNSURE = /^(?:08|53|57P|58|XX)/;
/** serialization_failure and deadlock_detected: rolled back, and likely to come through when tried again. */
const PASSING: ReadonlySet<unknown> = new Set(['40001', '40P01']);
/**
 * operator_intervention that ends the connection, read_only_sql_transaction, and statements that are prepared no
 * longer: another connection may do better.
 */
const STALE = /^(?:57P|25P03|25006|26000|0A000)/;
/** data_exception, integrity_constraint_violation, program_limit_exceeded: the values themselves are to blame. */
const VALUES = /^(?:22|23|54)/;

/** The SQLSTATE of an error that the server reported. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether the statement may have been committed although it failed, or may be lost although it was committed. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return UNSURE.test(state);
  return error instanceof ConnectionLostError || error instanceof UnconfirmedError;
}

/** Whether the statement was rolled back for the sake of another one. */
export function isPassing(error: unknown): boolean {
  return PASSING.has(sqlState(error));
}

/** Whether a connection is of no more use after this error. */
export function isStale(error: unknown): boolean {
  return STALE.test(sqlState(error) ?? '');
}

/** Whether a statement failed for the values in it. */
export function blamesValues(error: unknown): boolean {
  return VALUES.test(sqlState(error) ?? '');
}

/** What to say of an error; the one that stands for several addresses has no text of its own. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { readonly code?: unknown };
  return error.message || String(code ?? error.name);
}
