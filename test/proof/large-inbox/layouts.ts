/** A way to store deliveries. */
export interface Layout {
  /** Changes the tables of a migrated database that is empty. */
  readonly tables: string;
  /** The columns of a filled delivery that hold its body, and their values. */
  filled(body: string): { readonly columns: string; readonly values: string };
  /** Stores the bodies of filled deliveries, of which `source` gives the number `n` and the time `at`. */
  fillBodies(source: string, body: string): readonly string[];
  readonly bodies: boolean;
  /** The further column of a filled job, and its value. */
  readonly job?: { readonly column: string; readonly value: string };
  /** Portico's own statement for these tables. */
  rewritten(text: string): string;
}

/** The tables as they are. */
export const plain: Layout = {
  tables: '',
  filled: (body) => ({ columns: 'body', values: body }),
  fillBodies: () => [],
  bodies: false,
  rewritten: (text) => text,
};

/** Number of partitions of `bodies`: a month of days, and one that is emptied. */
export const SLOTS = 32;
const DAY = 24 * 60 * 60 * 1_000;
const slotOf = (at: string) => `(${at} / ${DAY} % ${SLOTS})::smallint`;

/** The partition of a time, in milliseconds since the epoch. */
export const slotAt = (at: number) => Math.floor(at / DAY) % SLOTS;

/**
 * Bodies in a table of their own, of a partition for each day of a ring: the partition of a day is emptied by TRUNCATE
 * before the ring comes to it again. So nobody creates partitions, and each row is routed to one.
 */
export const bodiesByDay: Layout = {
  tables: `
    ALTER TABLE deliveries ALTER COLUMN body DROP NOT NULL, ADD COLUMN slot SMALLINT, ADD COLUMN body_length INTEGER;
    CREATE TABLE delivery_bodies (slot SMALLINT NOT NULL, seq BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (slot, seq))
      PARTITION BY LIST (slot);
    ${Array.from({ length: SLOTS }, (_, i) => `CREATE TABLE delivery_bodies_${i} PARTITION OF delivery_bodies FOR VALUES IN (${i});`).join(' ')}`,
  filled: (body) => ({ columns: 'slot, body_length', values: `${slotOf('at')}, octet_length(${body})` }),
  fillBodies: (source, body) => [
    `INSERT INTO delivery_bodies (slot, seq, body) SELECT ${slotOf('at')}, n, ${body} FROM (${source}) AS each`,
  ],
  bodies: true,
  rewritten: (text) => {
    const body = '(SELECT b.body FROM delivery_bodies AS b WHERE b.slot = d.slot AND b.seq = d.seq)';
    return text
      .replace(
        'data_pointer, content_type, body, received_at, dedup_key, headers)',
        'data_pointer, content_type, slot, body_length, received_at, dedup_key, headers)',
      )
      .replace('substring($10::bytea FROM starts FOR length)', `${slotOf('received_at')}, length`)
      .replace(
        'added AS (',
        `filed AS (
        INSERT INTO delivery_bodies (slot, seq, body)
        SELECT ${slotOf('stored.received_at')}, stored.seq, substring($10::bytea FROM starts FOR length)
        FROM stored JOIN given USING (seq)), added AS (`,
      )
      .replace('d.body,', `${body},`)
      .replaceAll('octet_length(body)', 'body_length');
  },
};

const JOB_INDEXES = [
  '(delivery)',
  `(target, due_at, seq) WHERE status = 'open' AND NOT waits`,
  `(target, due_at, seq) WHERE status = 'open' AND NOT waits AND deaths > 0`,
  `(target, order_key, seq) WHERE status = 'open' AND order_key IS NOT NULL`,
  `(target, order_key) WHERE status = 'open' AND owner IS NOT NULL AND order_key IS NOT NULL`,
  `(seq) WHERE status = 'dead'`,
  `(target, finished_at) WHERE status = 'dead'`,
  '(finished_at, seq) WHERE finished_at IS NOT NULL',
];

/**
 * Jobs by the day of their delivery, without the foreign key and without the index that lets one job of an order key be
 * leased at a time: PostgreSQL has neither over partitions.
 */
export const jobsByDay: Layout = {
  ...plain,
  tables: `
    ALTER TABLE jobs RENAME TO jobs_plain;
    CREATE TABLE jobs (LIKE jobs_plain INCLUDING DEFAULTS, slot SMALLINT NOT NULL, PRIMARY KEY (seq, slot)) PARTITION BY LIST (slot);
    DROP TABLE jobs_plain;
    CREATE SEQUENCE jobs_seq OWNED BY jobs.seq;
    ALTER TABLE jobs ALTER COLUMN seq SET DEFAULT nextval('jobs_seq');
    ${Array.from({ length: SLOTS }, (_, i) => `CREATE TABLE jobs_${i} PARTITION OF jobs FOR VALUES IN (${i});`).join(' ')}
    ${JOB_INDEXES.map((rest) => `CREATE INDEX ON jobs ${rest};`).join(' ')}
    CREATE TRIGGER jobs_order AFTER UPDATE OF status, owner ON jobs FOR EACH ROW
    WHEN (NEW.order_key IS NOT NULL AND (OLD.status <> NEW.status OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL)))
    EXECUTE FUNCTION jobs_order();`,
  job: { column: 'slot', value: slotOf('at') },
  rewritten: (text) =>
    text.replace(
      /INSERT INTO jobs \(delivery, due_at, target, order_key\)\s+SELECT stored.seq,/,
      `INSERT INTO jobs (delivery, slot, due_at, target, order_key) SELECT stored.seq, ${slotOf('stored.received_at')},`,
    ),
};
