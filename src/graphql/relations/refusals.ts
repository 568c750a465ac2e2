import { TogetherError } from '@portico/graphql-plans';
import { HttpProblem } from '@portico/transport';
import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import { StatementTimeError } from '../../core/errors.ts';
import { EventsGoneError } from '../../relations/events.ts';
import { conflictFaults, listedFaults, toldFaults } from '../../relations/rows/faults.ts';
import { CountLimitError, UnindexedListError } from '../../relations/rows/row-lists.ts';
import { type RowFault, RowsRefusedError } from '../../relations/rows/rows.ts';
import { WriteRefusedError } from '../../relations/rows/writes.ts';
import { AggregateLimitError, aggregateProblem } from '../../relations/selections/aggregates.ts';
import { LIMITS, SelectionLimitError } from '../../relations/selections/limits.ts';

/** A refusal that clients see. `errors` are the single faults, each with its pointer or its argument. */
export function refusal(
  code: ErrorCode | string,
  message: string,
  extensions: Readonly<Record<string, unknown>> = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, ...extensions } });
}

/** The refusal of rows with faults, whose pointers begin at the argument `data`. */
export function faultyRows(code: ErrorCode, faults: readonly RowFault[]): GraphQLError {
  return refusal(code, toldFaults(faults), { errors: listedFaults(faults) });
}

export function missingRow(relation: string): GraphQLError {
  return refusal('NOT_FOUND', `${relation} has no row with this key`);
}

/** Turns what clients may see of an error into a refusal, and leaves other errors as they are. */
export function shown(error: unknown): unknown {
  if (error instanceof HttpProblem && error.status < 500) {
    const errors = error.reasons.length > 0 ? { errors: error.reasons } : {};
    return refusal(error.code, error.message, errors);
  }
  if (error instanceof EventsGoneError) return refusal(error.code, error.message);
  if (error instanceof CountLimitError) {
    const rows = error.limit.toLocaleString('en-US');
    return refusal(
      'LIMIT_EXCEEDED',
      `totalCount looks at ${rows} rows of ${error.relation} at most (scan); narrow \`where\` by what an index serves`,
      { limit: 'scan' },
    );
  }
  if (error instanceof AggregateLimitError)
    return refusal('LIMIT_EXCEEDED', aggregateProblem(error).message, { limit: error.limit });
  if (error instanceof StatementTimeError) {
    const message =
      'The operation looks at too many rows, or changes too many, for the time that its statements have together (statement); narrow it, or split it';
    return refusal('LIMIT_EXCEEDED', message, { limit: 'statement' });
  }
  if (error instanceof UnindexedListError) {
    const { relation, remedy = 'Narrow `where`' } = error;
    return refusal(
      'SEARCH_OFF',
      `More than 10,000 rows of ${relation} would have to be looked at. ${remedy}`,
    );
  }
  if (error instanceof SelectionLimitError) return limited(error);
  return error;
}

function limited({ limit, path }: SelectionLimitError): GraphQLError {
  const message = {
    perRow: `A row has more than ${LIMITS.perRow} of "${path}"; give it a \`limit\`, at most ${LIMITS.perRow}`,
    rows: `The rows up to "${path}" are more than ${LIMITS.rows}; give it a lower \`limit\``,
    bytes: `The rows up to "${path}" have more than ${LIMITS.bytes} bytes; select fewer fields, or give it a lower \`limit\``,
    scan: `More than ${LIMITS.rows} rows of "${path}" would have to be looked at; leave out its \`where\` and \`orderBy\`, or give the list a lower \`limit\``,
  }[limit];
  return refusal('LIMIT_EXCEEDED', message, { limit });
}

/** The refusal of several writes; `callOf` returns the call and the pointer of a write. */
export function refusedWrites(
  error: unknown,
  relationOf: (write: number) => string,
  placeOf: (write: number) => { readonly call: number; readonly pointer: string },
): unknown {
  if (error instanceof RowsRefusedError) {
    const write = error.conflicts[0]?.row ?? 0;
    const faults = error.conflicts.flatMap((conflict) =>
      conflictFaults(conflict, placeOf(conflict.row).pointer),
    );
    return new TogetherError(placeOf(write).call, faultyRows(error.code, faults));
  }
  if (!(error instanceof WriteRefusedError)) return error;
  const { write, reason } = error;
  const { call, pointer } = placeOf(write);
  if (reason === 'missing') return new TogetherError(call, missingRow(relationOf(write)));
  if (reason === 'unfit') {
    return new TogetherError(
      call,
      faultyRows('INVALID_ROW', [{ detail: 'a value does not fit its column', pointer }]),
    );
  }
  if (reason === 'large') {
    const large =
      'The written rows are larger together than a reply may be (reply bytes); write fewer of them at a time';
    return new TogetherError(call, refusal('LIMIT_EXCEEDED', large, { limit: 'reply bytes' }));
  }
  const message = 'The row has been changed since; read it again';
  return new TogetherError(call, refusal('PRECONDITION_FAILED', message));
}

/** Runs a read, whose refusals clients see. */
export async function showing<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw shown(error);
  }
}
