import assert from 'node:assert/strict';
import type { PostgresServer } from '../../support/postgres.ts';
import type { StoreContent, UserContent } from '../kill/ledger.ts';
import type { StoredJob } from '../kill/store-reader.ts';
import { ROW_QUERIES, rowContent } from '../rows/content.ts';

type Sql = (text: string) => ReturnType<PostgresServer['sql']>;

/** Everything that is stored. */
export async function readContent(sql: Sql): Promise<StoreContent> {
  const users = new Map<number, UserContent>();
  for (const [id, name, email] of await sql('SELECT id, name, email FROM users ORDER BY id')) {
    users.set(Number(id), { name: String(name), email: String(email) });
  }
  const deliveries = new Map<string, { event: string | null; body: string }>();
  for (const [event, body] of await sql(`SELECT event, convert_from(body, 'UTF8') FROM deliveries`)) {
    const { data } = JSON.parse(String(body)) as { data: { token: string } };
    assert.ok(!deliveries.has(data.token), `delivery ${data.token} is stored twice`);
    deliveries.set(data.token, { event: event === null ? null : String(event), body: String(body) });
  }
  const { authors, loans, events } = ROW_QUERIES;
  // Events that no process has read yet have no position.
  const numbered = `${events} NULLS LAST, seq`;
  const rows = rowContent({
    authors: await sql(authors),
    loans: await sql(loans),
    events: await sql(numbered),
  });
  return { users, deliveries, rows };
}

/** Every job with its delivery's token, the oldest first. */
export async function readJobs(sql: Sql): Promise<readonly StoredJob[]> {
  const rows = await sql(
    `SELECT j.seq, convert_from(d.body, 'UTF8')::json #>> '{data,token}', d.event, j.status, j.attempts, j.crashes, j.finished_at
    FROM jobs AS j JOIN deliveries AS d ON d.seq = j.delivery ORDER BY j.seq`,
  );
  return rows.map(([seq, token, event, status, attempts, crashes, finishedAt]) => ({
    seq: Number(seq),
    token: String(token),
    event: String(event),
    status: String(status),
    attempts: Number(attempts),
    crashes: Number(crashes),
    finishedAt: finishedAt === null ? null : Number(finishedAt),
  }));
}
