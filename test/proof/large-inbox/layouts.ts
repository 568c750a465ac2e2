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

/** Number of slots. */
export const SLOTS = 32;
const DAY = 24 * 60 * 60 * 1_000;
const slotOf = (at: string) => `(${at} / ${DAY} % ${SLOTS})::smallint`;

/** The partition of a time, in milliseconds since the epoch. */
export const slotAt = (at: number) => Math.floor(at / DAY) % SLOTS;

/** Bodies in slots, here one for each day. */
export const bodiesByDay: Layout = {
  tables: `UPDATE body_slots SET opened_at = 0 WHERE slot = ${slotAt(Date.now())}`,
  filled: (body) => ({ columns: 'slot, body_length', values: `${slotOf('at')}, octet_length(${body})` }),
  fillBodies: (source, body) => [
    `INSERT INTO delivery_bodies (slot, seq, body) SELECT ${slotOf('at')}, n, ${body} FROM (${source}) AS each`,
  ],
  bodies: true,
  rewritten: (text) => text,
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
      /INSERT INTO jobs \(delivery, due_at, target, order_key, run_at, priority\)\s+SELECT stored.seq,/,
      `INSERT INTO jobs (delivery, slot, due_at, target, order_key, run_at, priority) SELECT stored.seq, ${slotOf('stored.received_at')},`,
    ),
};
