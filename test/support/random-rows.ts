import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { storedKey } from '../../src/sql/inbox-sql.ts';
import { migrateDatabase } from '../../src/sql/open.ts';
import { type Random, seededRandom } from './random.ts';

export interface RowCounts {
  readonly users: number;
  readonly deliveries: number;
}

const PIECES = [
  'a',
  'é',
  '漢字',
  '🦊',
  '👩‍👩‍👧',
  '\u202e',
  ' ',
  '\n',
  '\t',
  '"',
  '\\',
  "'",
  '{}',
  '\uffff',
  '%s',
];
/** PostgreSQL cannot have the first as it is, and writes it by means of the second. */
const ODD_PIECES = [...PIECES, '\0', '\u0010', '\u00100'];

/** Makes an SQLite database with rows of all kinds and states, decided by `seed`. */
export async function makeRandomRows(file: string, seed: number, counts: RowCounts): Promise<void> {
  await migrateDatabase(`sqlite:${file}`);
  using db = new DatabaseSync(file);
  const random = seededRandom(seed);
  db.exec('BEGIN');
  fillUsers(db, random, counts.users);
  fillDeliveries(db, random, counts.deliveries);
  fillOthers(db, random, counts.deliveries);
  // Ids that were given and are gone, in the middle and at the end; removing deliveries notes the highest.
  db.exec(`
    UPDATE sqlite_sequence SET seq = ${counts.deliveries} WHERE name = 'deliveries';
    DELETE FROM users WHERE id % 7 = 3 OR id > ${counts.users} - 3;
    DELETE FROM jobs WHERE delivery > ${counts.deliveries} - 2 OR delivery % 11 = 5;
    DELETE FROM attempts WHERE job NOT IN (SELECT seq FROM jobs);
    DELETE FROM deliveries WHERE seq > ${counts.deliveries} - 2 OR seq % 11 = 5`);
  db.exec('COMMIT');
}

function fillUsers(db: DatabaseSync, random: Random, count: number): void {
  const insert = db.prepare('INSERT INTO users (name, email, version) VALUES (?, ?, ?)');
  for (let i = 0; i < count; i++) {
    insert.run(textOf(random, PIECES, 30), `${textOf(random, PIECES, 5)}@x`, random.below(2 ** 31));
  }
}

function fillDeliveries(db: DatabaseSync, random: Random, count: number): void {
  const delivery = db.prepare(`
    INSERT INTO deliveries (id, source, event, data_pointer, content_type, body, received_at, dedup_key, headers,
      sender_event)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const job = db.prepare(`
    INSERT INTO jobs (delivery, target, status, attempts, due_at, owner, order_key, error, finished_at, duration, ended_by, run_at,
      priority)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const attempt = db.prepare(`
    INSERT INTO attempts (job, attempt, outcome, started_at, duration, process, status, answer, error)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const maybe = <T>(value: () => T): T | null => (random.chance(0.5) ? value() : null);
  const odd = () => textOf(random, ODD_PIECES, 8);
  const key = (i: number) => storedKey(`${odd()}${i}${random.chance(0.1) ? 'k'.repeat(3_000) : ''}`);
  const moment = () => 1_700_000_000_000 + random.below(1_000_000_000);
  for (let i = 1; i <= count; i++) {
    const values: SQLInputValue[] = [
      `0190-${i}-${random.below(1e9)}`,
      random.pick(['', 'github', odd()]),
      maybe(odd),
      random.pick(['', '/data', odd()]),
      maybe(() => random.pick(['application/json', odd()])),
      bytesOf(random),
      moment(),
      maybe(() => key(i)),
      maybe(() => JSON.stringify({ 'x-event': odd() })),
      maybe(odd),
    ];
    delivery.run(...values);
    // None: unhandled.
    for (let jobs = random.below(4); jobs > 0; jobs--) {
      const status = random.pick(['open', 'open', 'done', 'dead', 'discarded']);
      const open = status === 'open';
      const { lastInsertRowid } = job.run(
        i,
        random.pick(['handler:a', `forward:${odd()}`]),
        status,
        random.below(12),
        moment(),
        // Leases of a process that died, two of them on one order.
        open && random.chance(0.3) ? 'dead-process' : null,
        random.chance(0.3) ? random.pick(['same', key(i)]) : null,
        maybe(odd),
        open ? null : moment(),
        status === 'done' ? random.below(1_000) : null,
        status === 'done' ? 'host:1:ab' : null,
        maybe(moment),
        random.below(3),
      );
      for (let left = random.below(3); left > 0; left--) {
        const outcome = random.pick(['retry', 'dead', 'released', 'crashed']);
        const status = maybe(() => 500);
        const duration = maybe(() => random.below(1_000));
        const values = [moment(), duration, 'host:2:cd', status, maybe(odd), maybe(odd)];
        attempt.run(lastInsertRowid, random.below(12), outcome, ...values);
      }
    }
  }
}

/** Remembered keys, checkpoints, what was enqueued and tokens, without the first ones. */
function fillOthers(db: DatabaseSync, random: Random, count: number): void {
  const odd = () => textOf(random, ODD_PIECES, 8);
  const key = db.prepare(
    'INSERT INTO remembered_keys (source, dedup_key, id, received_at) VALUES (?, ?, ?, ?)',
  );
  const mark = db.prepare('INSERT INTO checkpoints (name, at) VALUES (?, ?)');
  const enqueued = db.prepare(
    'INSERT INTO enqueued (id, source, event, body, received_at, dedup_key) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const token = db.prepare(
    'INSERT INTO api_tokens (name, digest, scopes, created_at, expires_at, revoked_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const moment = () => (random.chance(0.5) ? random.below(2 ** 40) : null);
  for (let i = 0; i < count; i++) {
    token.run(`t-${i >> 1}`, `${i}`, 'users:read other', i, moment(), i % 2 === 0 ? i : null, moment());
    key.run(odd(), storedKey(`${i}${odd()}`), `0180-${i}`, i);
    mark.run(`${odd()}${i}`, i);
    enqueued.run(`0190-x${i}`, odd(), odd(), new Uint8Array(i % 99), i, random.chance(0.5) ? odd() : null);
  }
  for (const table of ['remembered_keys', 'checkpoints', 'enqueued', 'api_tokens']) {
    db.exec(`DELETE FROM ${table} WHERE seq <= 3 OR seq > ${count} - 2`);
  }
}

function textOf(random: Random, pieces: readonly string[], most: number): string {
  return Array.from({ length: 1 + random.below(most) }, () => random.pick(pieces)).join('');
}

/** Mostly short, now and then larger than a batch. */
function bytesOf(random: Random): Uint8Array {
  const size = random.chance(0.02) ? random.below(5_000_000) : random.below(2_000);
  const bytes = new Uint8Array(random.chance(0.05) ? 0 : size);
  for (let i = 0; i < bytes.length; i += 1 + (i >> 4)) bytes[i] = random.below(256);
  return bytes;
}

/** Everything that a move keeps, row by row. */
export function rowsOf(file: string): Readonly<Record<string, readonly unknown[]>> {
  using db = new DatabaseSync(file);
  const all = (sql: string) => db.prepare(sql).all();
  return {
    users: all('SELECT * FROM users ORDER BY id'),
    deliveries: all('SELECT * FROM deliveries ORDER BY seq'),
    jobs: all(`SELECT seq, delivery, target, status, attempts, due_at, order_key, error, finished_at, duration, ended_by
      FROM jobs ORDER BY seq`),
    others: ['remembered_keys', 'checkpoints', 'enqueued', 'api_tokens'].flatMap((name) =>
      all(`SELECT * FROM ${name} ORDER BY seq`),
    ),
    attempts: all('SELECT * FROM attempts ORDER BY seq'),
    counters: all('SELECT name, seq FROM sqlite_sequence ORDER BY name'),
  };
}
