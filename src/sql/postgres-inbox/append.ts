import { type ClaimedJob, DIGEST_AT, type NewDelivery, TenantChangedError } from '../../inbox/delivery.ts';
import type { Appended, AppendedAndClaimed, HandOver } from '../../inbox/inbox.ts';
import type { BatchQueue, DatabaseObserver } from '../batch-queue.ts';
import { DELIVERY_BYTES, DELIVERY_OVERHEAD, HEAD_START } from '../inbox-sql.ts';
import type { Notifier } from '../postgres/notifier.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { storable, storableKey, stored } from '../postgres/text.ts';
import { writeQueue } from '../postgres/write-queue.ts';
import type { Server } from '../postgres-pool/server.ts';
import type { ConditionalAppends } from '../stores/producers.ts';
import { POSTGRES, type Row, SERVER_NOW, type Step } from '../stores/sql.ts';

/** Number of rows in the table of sizes; several, so that processes do not contend for one. */
const SIZE_PARTS = 64;

/**
 * SQL that adds the sizes of the rows of `from`, in its column `bytes`, to the size of the inbox, or
 * subtracts them.
 */
export const resize = (sign: '+' | '-', from: string) => `
  INSERT INTO inbox_size (part, bytes)
  SELECT pg_backend_pid() % ${SIZE_PARTS}, ${sign}(sum(bytes) + ${DELIVERY_OVERHEAD} * count(*)) FROM ${from} HAVING count(*) > 0
  ON CONFLICT (part) DO UPDATE SET bytes = inbox_size.bytes + excluded.bytes`;

/**
 * The number of the row of a table with the dedup key of the row `given`; written to force an index lookup instead of
 * a hash of the table.
 */
const knownIn = (table: string) => `
  (SELECT known.seq FROM ${table} AS known
    WHERE known.source = given.source AND known.dedup_key = given.dedup_key LIMIT 1)`;

/**
 * Whether deliveries of tenants are among those given, which are stored only if the endpoints of the tenant have the
 * version that is given, and revive only those with the digest that is given; `first` is the number of their first parameter.
 */
const TENANTS = {
  none: () => ({ given: '', names: '', looked: '', condition: '', isSame: '', results: '' }),
  some: (first: number) => ({
    given: `, $${first}::text[], $${first + 1}::bigint[], $${first + 2}::text[]`,
    names: ', tenant, version, digest',
    looked: `,
        given.tenant IS NOT NULL AND given.version <> coalesce(
          (SELECT tenants.version FROM webhook_tenants AS tenants WHERE tenants.name = given.tenant), 0) AS has_changed`,
    condition: ' AND NOT has_changed',
    isSame: `
        AND (looked.digest IS NULL OR looked.digest = (
          SELECT substr(known.id, ${DIGEST_AT + 1}) FROM deliveries AS known WHERE known.seq = looked.known))`,
    results: `
    UNION ALL SELECT id, 'changed', NULL FROM looked WHERE has_changed`,
  }),
} as const;

/** Whether jobs of new deliveries may be stored as claimed: those with an owner are, for `lease`. */
const JOBS = {
  open: { given: '', columns: '', names: '', values: '', lease: '', returned: '', results: '' },
  claimed: {
    given: ', $19::text[], $20::bigint[]',
    names: ', owner, lease',
    columns: ', owner, claimed_at, attempts',
    values: `, jobs.owner, CASE WHEN jobs.owner IS NOT NULL THEN ${SERVER_NOW} END,
        CASE WHEN jobs.owner IS NULL THEN 0 ELSE 1 END`,
    lease: `${SERVER_NOW} + jobs.lease, `,
    returned: 'RETURNING delivery, seq, target, owner',
    results: `
    UNION ALL
    SELECT stored.id, added.target, added.seq FROM added JOIN stored ON stored.seq = added.delivery
    WHERE added.owner IS NOT NULL`,
  },
} as const;

/**
 * Whether deliveries with dedup keys are among those given. Rows are then inserted in the order of their keys and dead
 * jobs are locked in the order of `seq`, so that concurrent batches with the same deliveries cannot deadlock. Every
 * snapshot contains either a delivery or, after its removal, its remembered key, so a repeat during the removal is not
 * stored twice. Without keys there is nothing to look up, and ON CONFLICT would lock each new row on its own.
 */
const KEYS = {
  none: { looked: '', condition: '', conflict: '', revived: () => '', results: '' },
  some: {
    looked: `, ${knownIn('deliveries')} AS known, ${knownIn('remembered_keys')} AS remembered`,
    condition: ' AND known IS NULL AND remembered IS NULL',
    conflict: `
      ORDER BY source, dedup_key, seq
      ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING`,
    revived: (isSame: string) => `
    dead AS MATERIALIZED (
      SELECT jobs.seq, looked.id, looked.received_at
      FROM jobs JOIN looked ON looked.known = jobs.delivery
      WHERE jobs.delivery = ANY (ARRAY(SELECT known FROM looked WHERE known IS NOT NULL)) AND jobs.status || '' = 'dead'${isSame}
      ORDER BY jobs.seq FOR UPDATE OF jobs),
    revived AS (
      UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ${POSTGRES.notAhead('dead.received_at')} - ${HEAD_START},
        run_at = NULL, owner = NULL, finished_at = NULL
      FROM dead
      WHERE jobs.seq = ANY (ARRAY(SELECT seq FROM dead)) AND jobs.seq = dead.seq AND jobs.status || '' = 'dead'
      RETURNING dead.id),`,
    results: `
    UNION ALL SELECT DISTINCT id, 'revived', NULL::bigint FROM revived`,
  },
} as const;

/**
 * Stores a batch of deliveries with their jobs. The bodies are one value with the offset and length of each. `seq`
 * follows the order of arrival. The row without an id has the number of stored deliveries; each has a row
 * unless all are stored. Further rows have another result of a delivery, or the target and number of a job stored
 * as claimed.
 */
const append = (
  name: string,
  keys: (typeof KEYS)[keyof typeof KEYS],
  jobs: (typeof JOBS)[keyof typeof JOBS],
  tenants: ReturnType<(typeof TENANTS)[keyof typeof TENANTS]> = TENANTS.none(),
) => ({
  name,
  text: `
    WITH given AS MATERIALIZED (
      SELECT given.*, nextval((SELECT pg_get_serial_sequence('deliveries', 'seq'))::regclass) AS seq
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[],
        $8::bigint[], $9::text[], $14::text[], $17::text[], $18::text[]${tenants.given}) WITH ORDINALITY
        AS given (id, source, event, data_pointer, content_type, starts, length, received_at, dedup_key, headers, trace, sender_event${tenants.names}, nth)),
    looked AS (SELECT given.*${keys.looked}${tenants.looked} FROM given),
    stored AS (
      INSERT INTO deliveries (seq, id, source, event, data_pointer, content_type, received_at, dedup_key, headers, trace, sender_event, body)
      OVERRIDING SYSTEM VALUE
      SELECT seq, id, source, event, data_pointer, content_type, received_at, dedup_key, headers, trace, sender_event,
        substring($10::bytea FROM starts FOR length)
      FROM looked WHERE true${keys.condition}${tenants.condition}${keys.conflict}
      RETURNING seq, id, received_at, ${DELIVERY_BYTES} AS bytes),
    added AS (
      INSERT INTO jobs (delivery, due_at, target, order_key, run_at, priority${jobs.columns})
      SELECT stored.seq, coalesce(${jobs.lease}jobs.run_at, ${POSTGRES.notAhead('stored.received_at')} - ${HEAD_START}),
        jobs.target, jobs.order_key, jobs.run_at, jobs.priority${jobs.values}
      FROM unnest($11::text[], $12::text[], $13::text[], $15::bigint[], $16::bigint[]${jobs.given}) WITH ORDINALITY
        AS jobs (id, target, order_key, run_at, priority${jobs.names}, nth)
      JOIN stored USING (id) ORDER BY jobs.nth ${jobs.returned}),${keys.revived(tenants.isSame)}
    resized AS (${resize('+', 'stored')})
    SELECT NULL, 'stored', count(*) FROM stored
    UNION ALL SELECT id, 'stored', NULL FROM stored WHERE (SELECT count(*) FROM stored) < cardinality($1::text[])${keys.results}${jobs.results}${tenants.results}`,
});

/** The statements for deliveries of tenants or none, with jobs to hand over or none, with keys or none. */
const APPEND = {
  plain: { some: append('append', KEYS.some, JOBS.open), none: append('append-new', KEYS.none, JOBS.open) },
  claiming: {
    some: append('append-and-claim', KEYS.some, JOBS.claimed),
    none: append('append-new-and-claim', KEYS.none, JOBS.claimed),
  },
  published: {
    some: append('publish', KEYS.some, JOBS.open, TENANTS.some(19)),
    none: append('publish-new', KEYS.none, JOBS.open, TENANTS.some(19)),
  },
  publishedClaiming: {
    some: append('publish-and-claim', KEYS.some, JOBS.claimed, TENANTS.some(21)),
    none: append('publish-new-and-claim', KEYS.none, JOBS.claimed, TENANTS.some(21)),
  },
};

/** A delivery to store, with the jobs to hand over. */
interface GivenDelivery {
  readonly delivery: NewDelivery;
  readonly handOver?: HandOver | undefined;
}

/** Maximum number of connections for concurrent batches of appends. */
const CONCURRENCY = 2;

/** The queue of deliveries to store with their jobs; each batch is one statement. */
export function appendQueue(
  server: Server,
  observer: DatabaseObserver,
): BatchQueue<GivenDelivery, AppendedAndClaimed | TenantChangedError> {
  return writeQueue((given) => appendGiven(server, given), {
    concurrency: CONCURRENCY,
    observer,
    maxWait: server.maxWait,
    sizeOf: ({ delivery }) => delivery.body.byteLength,
  });
}

/** Stores deliveries and their jobs in one statement; resolves to the result of each. */
async function appendGiven(
  server: Server,
  given: readonly GivenDelivery[],
): Promise<readonly (AppendedAndClaimed | TenantChangedError)[]> {
  const deliveries = given.map(({ delivery }) => delivery);
  const isClaiming = given.some(({ handOver }) => handOver !== undefined);
  const ofTenants = deliveries.some(({ tenant }) => tenant !== undefined);
  const values = [
    ...valuesOf(deliveries),
    ...(isClaiming ? leasesOf(given) : []),
    ...(ofTenants ? tenantsOf(deliveries) : []),
  ];
  const [plain, claiming] = ofTenants
    ? [APPEND.published, APPEND.publishedClaiming]
    : [APPEND.plain, APPEND.claiming];
  const keys = deliveries.some(({ dedupKey }) => dedupKey !== null) ? 'some' : 'none';
  const rows = await server.write((isClaiming ? claiming : plain)[keys], values);
  const results = resultsOf(deliveries, rows);
  const claimed = new Map<string, Map<string, number>>();
  for (const [id, target, job] of isClaiming ? (rows as readonly ResultRow[]) : []) {
    if (id === null || job === null) continue;
    claimed.set(id, (claimed.get(id) ?? new Map()).set(stored(target), job));
  }
  return given.map(({ delivery }, i) => {
    const appended = results[i] ?? 'duplicate';
    if (appended === 'changed') return new TenantChangedError();
    const jobs = [...(claimed.get(delivery.id) ?? [])].map(
      ([target, job]): ClaimedJob => ({ job, target, attempt: 1, crashes: 0, ordered: false, delivery }),
    );
    return { appended, jobs };
  });
}

type ResultRow = readonly [id: string | null, text: string, job: number | null];

/** The result of each delivery, from the rows of the statement that was given all of them. */
function resultsOf(
  deliveries: readonly NewDelivery[],
  rows: readonly Row[],
): readonly (Appended | 'changed')[] {
  const all = rows as readonly ResultRow[];
  if (all.some(([id, , count]) => id === null && count === deliveries.length))
    return deliveries.map(() => 'stored');
  const results = new Map<string | null, string>();
  for (const [id, text, job] of all) if (job === null) results.set(id, text);
  return deliveries.map(({ id }) => (results.get(id) ?? 'duplicate') as Appended | 'changed');
}

/** The tenant of each delivery, the version of its endpoints, and the digest; null for deliveries without these. */
function tenantsOf(deliveries: readonly NewDelivery[]): readonly unknown[] {
  return [
    deliveries.map(({ tenant }) => tenant?.name ?? null),
    deliveries.map(({ tenant }) => tenant?.version ?? null),
    present(deliveries.map(({ tenant }) => tenant?.digest)),
  ];
}

/** The owner and the lease of each job; null for jobs without a handover. */
function leasesOf(given: readonly GivenDelivery[]): readonly unknown[] {
  const handOvers = given.flatMap(({ delivery, handOver }) =>
    delivery.jobs.map(({ target }) => (handOver?.targets.includes(target) ? handOver : undefined)),
  );
  return [handOvers.map((each) => each?.owner ?? null), handOvers.map((each) => each?.lease ?? null)];
}

/** Stores deliveries in the transaction of a step that allows it. */
export function conditionalAppends(sql: PostgresSql, notifier: Notifier): ConditionalAppends {
  async function append(
    step: Step,
    deliveriesOf: (rows: readonly Row[]) => readonly NewDelivery[],
  ): Promise<ReadonlyMap<string, Appended> | undefined> {
    let given: readonly NewDelivery[] = [];
    const [rows] =
      (await sql.writeIf(step, (found) => {
        given = deliveriesOf(found);
        return [[APPEND.plain.some, valuesOf(given)]];
      })) ?? [];
    if (rows === undefined) return undefined;
    const results = resultsOf(given, rows);
    if (results.some((each) => each !== 'duplicate')) notifier.notify('work');
    return new Map(given.map(({ id }, i) => [id, results[i] as Appended]));
  }
  return {
    async appendIf(step, deliveries) {
      const results = await append(step, () => deliveries);
      return results && deliveries.map(({ id }) => results.get(id) ?? 'duplicate');
    },
    async appendTaken(taken, step) {
      const results = await append(step(taken), (rows) => {
        const own = new Set(rows.map(([id]) => String(id)));
        return taken.map(({ delivery }) => delivery).filter(({ id }) => own.has(id));
      });
      return taken.map(({ delivery: { id } }) => results?.get(id));
    },
  };
}

function valuesOf(deliveries: readonly NewDelivery[]): readonly unknown[] {
  const { starts, lengths, bytes } = packBodies(deliveries.map(({ body }) => body));
  const jobs = deliveries.flatMap(({ id, jobs }) => jobs.map((job) => ({ id, ...job })));
  return [
    deliveries.map(({ id }) => id),
    deliveries.map(({ source }) => storable(source)),
    deliveries.map(({ event }) => storable(event)),
    deliveries.map(({ dataPointer }) => storable(dataPointer)),
    deliveries.map(({ contentType }) => storable(contentType)),
    starts,
    lengths,
    deliveries.map(({ receivedAt }) => receivedAt),
    present(deliveries.map(({ dedupKey }) => storableKey(dedupKey))),
    bytes,
    jobs.map(({ id }) => id),
    jobs.map(({ target }) => storable(target)),
    present(jobs.map(({ orderKey }) => storableKey(orderKey))),
    present(deliveries.map(({ headers }) => headers)),
    present(jobs.map(({ runAt }) => runAt)),
    jobs.map(({ priority = 0 }) => priority),
    present(deliveries.map(({ trace }) => trace)),
    present(deliveries.map(({ senderEvent = null }) => storable(senderEvent))),
  ];
}

/** A column that few rows have. If none has it, null is sent instead of an array, and `unnest` fills it with NULL. */
function present<T>(values: readonly (T | null | undefined)[]): readonly (T | null | undefined)[] | null {
  return values.every((value) => value === null || value === undefined) ? null : values;
}

/** Concatenated bodies, with the 1-based offset and the length of each for `substring`. */
interface PackedBodies {
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
  readonly bytes: Buffer;
}

/** Packs bodies for one parameter of a statement. */
export function packBodies(bodies: readonly Uint8Array[]): PackedBodies {
  const lengths = bodies.map(({ byteLength }) => byteLength);
  let next = 1;
  const starts = lengths.map((length) => {
    const start = next;
    next += length;
    return start;
  });
  return { starts, lengths, bytes: Buffer.concat(bodies) };
}
