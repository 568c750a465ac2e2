import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { Pool, type PoolClient } from 'pg';
import { address } from '../listen.ts';

/** What a job needs to be sent; it is the job's payload, so that no attempt reads a table. */
export interface Sending {
  readonly event: string;
  readonly url: string;
  readonly secret: string;
  readonly body: string;
}

/** A queue that sends events. */
export interface SendingQueue {
  /** Stores jobs in the transaction of a client. */
  enqueue(client: PoolClient, jobs: readonly Sending[]): Promise<unknown>;
  /** Begins to send. */
  work(): Promise<unknown>;
}

const digest = (token: string) => createHash('sha256').update(token).digest();
const TOKEN = digest(process.env.TOKEN ?? '');
const POOL = 10;

const TABLES = `
  CREATE TABLE endpoints (id text PRIMARY KEY, tenant text NOT NULL, url text NOT NULL, secret text NOT NULL, types text[]);
  CREATE INDEX ON endpoints (tenant);
  CREATE TABLE events (id uuid PRIMARY KEY, tenant text NOT NULL, type text NOT NULL, body text NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now())`;

/** Stores events, and finds the endpoints that get them. */
const PUBLISH = {
  name: 'publish',
  text: `
    WITH given AS (
      SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS given (id, tenant, type, body)),
    stored AS (INSERT INTO events (id, tenant, type, body) SELECT id, tenant, type, body FROM given)
    SELECT given.id AS event, endpoints.url, endpoints.secret, given.body
    FROM given JOIN endpoints ON endpoints.tenant = given.tenant AND (types IS NULL OR given.type = ANY (types))`,
};

interface NewEvent {
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  readonly body: string;
}

/** Serves `POST /events` as Portico does, over a queue in the database of DATABASE_URL; sends unless SEND is 0. */
export async function serveEvents(open: (url: string) => Promise<SendingQueue>): Promise<void> {
  const url = process.env.DATABASE_URL ?? '';
  const pool = new Pool({ connectionString: url, max: POOL });
  await pool.query(TABLES);
  const queue = await open(url);

  /** One transaction: the events and a job for each endpoint. Resolves to the number of endpoints of each event. */
  async function store(events: readonly NewEvent[]): Promise<ReadonlyMap<string, number>> {
    const client = await pool.connect();
    try {
      const columns = [
        events.map(({ id }) => id),
        events.map(({ tenant }) => tenant),
        events.map(({ type }) => type),
        events.map(({ body }) => body),
      ];
      const begun = client.query('BEGIN');
      const { rows } = await client.query<Sending>({ ...PUBLISH, values: columns });
      await begun;
      if (rows.length > 0) await queue.enqueue(client, rows);
      await client.query('COMMIT');
      const counts = new Map<string, number>();
      for (const { event } of rows) counts.set(event, (counts.get(event) ?? 0) + 1);
      return counts;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  const server = createServer(async (request, response) => {
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    try {
      if (request.method !== 'POST' || request.url !== '/events') return answer(404, {});
      if (!isAllowed(request)) return answer(401, {});
      const given = await text(request);
      const isMany = request.headers['content-type'] === 'application/x-ndjson';
      const events = (isMany ? given.split('\n').filter((line) => line !== '') : [given]).map(readEvent);
      const counts = await store(events);
      const all = events.map(({ id }) => ({ id, endpoints: counts.get(id) ?? 0 }));
      answer(202, isMany ? { events: all } : all[0]);
    } catch (error) {
      answer(400, { error: String(error) });
    }
  });
  if (process.env.SEND !== '0') await queue.work();
  server.listen(address.port, address.host);
}

function isAllowed({ headers }: IncomingMessage): boolean {
  const [, token] = /^Bearer (\S+)$/i.exec(headers.authorization ?? '') ?? [];
  return token !== undefined && timingSafeEqual(digest(token), TOKEN);
}

function readEvent(given: string): NewEvent {
  const { tenant, type, data } = JSON.parse(given) as Record<string, unknown>;
  if (typeof tenant !== 'string' || typeof type !== 'string' || data === undefined)
    throw new Error('an event has tenant, type and data');
  const body = JSON.stringify({ type, timestamp: new Date().toISOString(), data });
  return { id: randomUUID(), tenant, type, body };
}
