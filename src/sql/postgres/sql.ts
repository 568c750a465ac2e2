import type { DatabaseObserver } from '../batch-queue.ts';
import type { Row as ServerRow, Statement, Steps } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import type { Row, Sql, Step, Value } from '../stores/sql.ts';
import { storable, stored } from './text.ts';
import type { UserReads } from './user-reads.ts';
import { singleWrite } from './write-queue.ts';

/** The statements of both engines on PostgreSQL. */
export interface PostgresSql extends Sql {
  /**
   * Runs a step and, if it returns rows, the statements made of them, in one transaction; resolves to the
   * rows of the statements, or to undefined if the step returns no row.
   */
  writeIf(
    step: Step,
    then: (rows: readonly Row[]) => Steps,
  ): Promise<readonly (readonly ServerRow[])[] | undefined>;
  /** Runs a step and a statement of this engine in one transaction; resolves to the rows of the statement. */
  writeWith(step: Step, statement: Steps[number]): Promise<readonly ServerRow[]>;
}

interface PostgresSqlOptions {
  /** Whether texts may contain any character, and are escaped (see `storable`). Default: false. */
  readonly escapes?: boolean;
  /** Where reads run. Default: the server. */
  readonly reads?: Pick<UserReads, 'run'>;
  /** Called after each write, successful or not: one that fails without an answer may have been stored. */
  onWritten?(): void;
}

/** Runs the statements of both engines in a PostgreSQL database. */
export function postgresSql(
  server: Server,
  observer: DatabaseObserver,
  { escapes = false, reads, onWritten }: PostgresSqlOptions = {},
): PostgresSql {
  const decode = (column: unknown) => (escapes && typeof column === 'string' ? stored(column) : column);
  const decoded = (rows: readonly ServerRow[]) => rows.map((row) => row.map(decode));

  function toServer([{ name, postgres }, ...values]: Step): [Statement, unknown[]] {
    return [name === '' ? { text: postgres } : { name, text: postgres }, values.map(encoded)];
  }
  function encoded(value: Value): unknown {
    if (typeof value === 'string') return escapes ? storable(value) : value;
    if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
    if (!('rows' in value)) return value.map(encoded);
    // JSON, in which PostgreSQL accepts no lone surrogates.
    return JSON.stringify(value.rows.map((row) => row.map((each) => wellFormed(encoded(each)))));
  }
  async function written<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await singleWrite(observer, work);
    } finally {
      onWritten?.();
    }
  }

  return {
    async read(query, ...values) {
      const [statement, bound] = toServer([query, ...values]);
      const { isLong, postgres } = query;
      if (reads !== undefined) return decoded(await reads.run(statement, bound, isLong));
      return decoded(
        await (isLong ? server.readAlone({ text: postgres }, bound) : server.read(statement, bound)),
      );
    },
    write: (...steps) =>
      written(async () => {
        const [only, ...others] = steps;
        if (only !== undefined && others.length === 0)
          return [decoded(await server.write(...toServer(only)))];
        return (await server.transaction(steps.map(toServer))).map(decoded);
      }),
    writeIf: (step, then) =>
      written(async () => {
        const [first = [], ...others] = await server.transaction([toServer(step)], ([rows = []]) =>
          rows.length === 0 ? [] : then(decoded(rows)),
        );
        return first.length === 0 ? undefined : others;
      }),
    writeWith: (step, statement) =>
      written(async () => {
        const [, rows = []] = await server.transaction([toServer(step), statement]);
        return rows;
      }),
  };
}

function wellFormed(value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}
