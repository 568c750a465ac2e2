import { DatabaseSync } from 'node:sqlite';
import type { SearchLevel } from '../../src/relations/user.ts';
import { openDatabase } from '../../src/sql/open.ts';

/** How much a database is filled with. */
export interface Filling {
  readonly users: number;
  readonly deliveries: number;
  /** What lists of the users can be found by. */
  readonly search: SearchLevel;
}

const COUNT = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)';

/** Makes a database file of many users, `name 1` to `name <n>`, and of many deliveries: every hundredth is dead. */
export async function fillSqlite(file: string, { users, deliveries, search }: Filling): Promise<void> {
  // The indexes are made from all users at once, by far the faster way.
  await openDatabase(`sqlite:${file}`)[Symbol.asyncDispose]();
  {
    using db = new DatabaseSync(file, { timeout: 5_000 });
    db.exec('PRAGMA synchronous = off; BEGIN');
    db.prepare(
      `${COUNT} INSERT INTO users (name, email) SELECT 'name ' || i, 'e' || i || '@x.org' FROM n`,
    ).run(users);
    db.prepare(`${COUNT} INSERT INTO deliveries (seq, id, source, event, data_pointer, content_type, body, received_at)
      SELECT i, printf('%020d', i), '', 'filled', '/data', 'application/json',
        CAST('{"event":"filled","data":{"number":' || i || '}}' AS blob), 1700000000000 + i FROM n`).run(
      deliveries,
    );
    db.prepare(`${COUNT} INSERT INTO jobs (seq, delivery, target, status, attempts, due_at, finished_at)
      SELECT i, i, 'handler:filled', iif(i % 100 = 0, 'dead', 'done'), 1, 1700000000000 + i, 1700000000050 + i
      FROM n`).run(deliveries);
    db.exec(`INSERT INTO delivery_zones SELECT max(seq), min(seq), min(id), max(id) FROM deliveries GROUP BY seq / 512;
      COMMIT`);
  }
  await openDatabase(`sqlite:${file}`, { userIndexes: { search } })[Symbol.asyncDispose]();
}
