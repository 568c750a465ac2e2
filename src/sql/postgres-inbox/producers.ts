import type {
  Checkpoints,
  DeadLetters,
  Enqueued,
  EnqueuedDeliveries,
  RelayStore,
} from '../../inbox/inbox.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import { DEAD_LETTERS, OLDEST_ENQUEUED } from '../inbox-sql.ts';
import type { Notifier } from '../postgres/notifier.ts';
import { storable, stored } from '../postgres/text.ts';
import { singleWrite } from '../postgres/write-queue.ts';
import type { Row } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { appendAtCheckpoint, appendEnqueued, appendRelayed } from './append.ts';
import { SERVER_NOW } from './server-clock.ts';

const OLDEST = { name: 'oldest-enqueued', text: OLDEST_ENQUEUED };

/** Deliveries enqueued by programs in PostgreSQL; each commit notifies. */
export function postgresEnqueued(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
): EnqueuedDeliveries {
  return {
    async oldest() {
      return (await server.readAlone(OLDEST, [])).map(enqueued);
    },
    async take(taken) {
      const results = await singleWrite(observer, () => appendEnqueued(server, taken));
      if (results.some((result) => result === 'stored' || result === 'revived')) notifier.notify('work');
      return results;
    },
    onEnqueued: (listener) => notifier.listen('enqueued', listener),
  };
}

function enqueued(row: Row): Enqueued {
  type Columns = [number, string, string, string, Uint8Array, number, string | null];
  const [seq, id, source, event, body, receivedAt, dedupKey] = row as Columns;
  const texts = { source: stored(source), event: stored(event), dedupKey: stored(dedupKey) };
  return { seq, id, ...texts, body, receivedAt };
}

const READ = { name: 'checkpoints', text: 'SELECT name, at FROM checkpoints WHERE name = ANY ($1::text[])' };
const MOVE_CHECKPOINT = {
  name: 'move-checkpoint',
  text: `
    INSERT INTO checkpoints (name, at) VALUES ($1, $3::bigint)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE checkpoints.at = $2::bigint RETURNING name`,
};
const CLOCK = { name: 'clock', text: `SELECT ${SERVER_NOW}` };

/** Checkpoints in PostgreSQL. */
export function postgresCheckpoints(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
): Checkpoints {
  return {
    async read(names) {
      const rows = await server.read(READ, [names.map((name) => storable(name))]);
      return new Map(rows.map(([name, at]) => [stored(String(name)), Number(at)]));
    },
    async move({ name, from, to }) {
      const values = [storable(name), from, to];
      return (await singleWrite(observer, () => server.write(MOVE_CHECKPOINT, values))).length > 0;
    },
    async append(move, delivery) {
      const appended = await singleWrite(observer, () => appendAtCheckpoint(server, move, delivery));
      if (appended !== undefined && appended !== 'duplicate') notifier.notify('work');
      return appended;
    },
    async clock() {
      const [row] = await server.read(CLOCK, []);
      return Number(row?.[0]);
    },
  };
}

const BEGIN = {
  name: 'relay-begin',
  text: `
    INSERT INTO user_relay (id, position, at, moved_at) VALUES (1, $1::bigint, $2::bigint, $3::bigint)
    ON CONFLICT (id) DO UPDATE SET moved_at = excluded.moved_at RETURNING position, at`,
};
const MOVE_RELAY = {
  name: 'relay-move',
  text: `
    UPDATE user_relay SET position = $3::bigint, at = $4::bigint, moved_at = $5::bigint
    WHERE position = $1::bigint AND at = $2::bigint RETURNING position`,
};
const END = { name: 'relay-end', text: 'DELETE FROM user_relay' };

/** The place of the relay of users' events, in PostgreSQL. */
export function postgresRelay(server: Server, notifier: Notifier, observer: DatabaseObserver): RelayStore {
  return {
    async begin({ position, at }) {
      const [row] = await singleWrite(observer, () => server.write(BEGIN, [position, at, Date.now()]));
      return { position: Number(row?.[0]), at: Number(row?.[1]) };
    },
    async move(from, to, deliveries) {
      const move = [from.position, from.at, to.position, to.at, Date.now()];
      if (deliveries.length === 0) {
        return (await singleWrite(observer, () => server.write(MOVE_RELAY, move))).length > 0;
      }
      const moved = await singleWrite(observer, () => appendRelayed(server, move, deliveries));
      if (moved) notifier.notify('work');
      return moved;
    },
    async end() {
      await server.write(END, []);
    },
  };
}

const STATEMENT = { name: 'dead-letters', text: DEAD_LETTERS };

/** Implements `Inbox.deadLetters`. */
export async function postgresDeadLetters(
  server: Server,
  until: number,
  interval: number,
): Promise<readonly DeadLetters[]> {
  const rows = await server.readAlone(STATEMENT, [until, interval]);
  return rows.map(([target, count, since]) => ({
    target: stored(String(target)),
    count: Number(count),
    since: Number(since),
  }));
}
