import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** One row of each kind that the doors store, on the pages where their next rows would go. */
const INSERTS = [
  `INSERT INTO users (name, email) VALUES ('', '')`,
  `INSERT INTO deliveries (id, source, data_pointer, body, received_at, dedup_key)
   VALUES ('', '', '', x'', 0, lower(hex(randomblob(16))))`,
  `INSERT INTO jobs (delivery, due_at, target)
   VALUES (last_insert_rowid(), 0, coalesce((SELECT target FROM jobs ORDER BY seq DESC LIMIT 1), ''))`,
];

/**
 * Checks that the doors can write: a damaged page fails only writes to its table. It stores rows as the doors
 * do and rolls them back, which leaves nothing in the WAL.
 */
export class WriteCheck {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #inserts: readonly StatementSync[];
  readonly #rollback: StatementSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#inserts = INSERTS.map((sql) => db.prepare(sql));
    this.#rollback = db.prepare('ROLLBACK');
  }

  /** Returns why a write would fail; undefined if it would succeed. Must run outside a transaction. */
  failure(): string | undefined {
    try {
      this.#begin.run();
      for (const insert of this.#inserts) insert.run();
      return undefined;
    } catch (error) {
      return String(error);
    } finally {
      if (this.#db.isTransaction) this.#rollback.run();
    }
  }
}
