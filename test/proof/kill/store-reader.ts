import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { readRows } from '../rows/content.ts';
import type { StoreContent, UserContent } from './ledger.ts';

export interface StoredJob {
  readonly seq: number;
  readonly token: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
  readonly crashes: number;
  readonly finishedAt: number | null;
}

/** Everything in a database file. Whoever opens it closes it. */
export interface StoreReader extends Disposable {
  content(): StoreContent;
  /** Every job with its delivery's token, the oldest first. */
  jobs(): readonly StoredJob[];
  openJobs(): number;
  /** Fails unless the file is whole. */
  checkIntegrity(): void;
}

const TOKEN = `CAST(d.body AS TEXT) ->> '$.data.token'`;

/** Opens a database file beside the program or after it; reading leaves the file as it is. */
export function readStore(file: string): StoreReader {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  return {
    content() {
      const users = new Map<number, UserContent>();
      for (const { id, name, email } of db.prepare('SELECT id, name, email FROM users').iterate()) {
        users.set(Number(id), { name: String(name), email: String(email) });
      }
      const deliveries = new Map<string, { event: string | null; body: string }>();
      const rows = db.prepare('SELECT event, CAST(body AS TEXT) AS body FROM deliveries').iterate();
      for (const { event, body } of rows) {
        const { data } = JSON.parse(String(body)) as { data: { token: string } };
        assert.ok(!deliveries.has(data.token), `delivery ${data.token} is stored twice`);
        deliveries.set(data.token, { event: event === null ? null : String(event), body: String(body) });
      }
      return { users, deliveries, rows: readRows(db) };
    },
    jobs: () =>
      db
        .prepare(
          `SELECT j.seq, ${TOKEN} AS token, d.event, j.status, j.attempts, j.crashes, j.finished_at AS finishedAt
          FROM jobs AS j JOIN deliveries AS d ON d.seq = j.delivery ORDER BY j.seq`,
        )
        .all() as unknown as readonly StoredJob[],
    openJobs: () =>
      Number(db.prepare(`SELECT count(*) AS count FROM jobs WHERE status = 'open'`).get()?.count),
    checkIntegrity() {
      assert.deepEqual(
        db
          .prepare('PRAGMA integrity_check')
          .all()
          .map((row) => row.integrity_check),
        ['ok'],
      );
    },
    [Symbol.dispose]: () => db.close(),
  };
}
