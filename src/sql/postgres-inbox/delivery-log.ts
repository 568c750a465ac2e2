import type { ReplayedJob } from '../../inbox/operations.ts';
import type { DatabaseObserver } from '../batch-queue.ts';
import { DatabaseDeliveryLog } from '../delivery-log.ts';
import { HEAD_START } from '../inbox-sql.ts';
import type { Notifier } from '../postgres/notifier.ts';
import { storable, storableKey, stored } from '../postgres/text.ts';
import { singleWrite } from '../postgres/write-queue.ts';
import type { Row } from '../postgres-pool/connection.ts';
import type { Server } from '../postgres-pool/server.ts';
import { awaitEarlierWriters } from './inbox.ts';
import { notAhead } from './server-clock.ts';
import { KEEP_SUCCESSES } from './settle.ts';

// Serialises concurrent replays, so that the second sees the result of the first.
const LOCK = { text: 'SELECT seq FROM deliveries WHERE id = $1 FOR UPDATE' };
// Gives the job of a former handler to the current one.
const REPLACE_TARGET = {
  text: `
    UPDATE jobs SET target = $3, order_key = $4
    WHERE delivery = (SELECT seq FROM deliveries WHERE id = $1) AND target = $2
      AND (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs AS other WHERE other.delivery = jobs.delivery) = 0`,
};
const REPLAY_JOBS = {
  text: `
    UPDATE jobs SET status = 'open', attempts = 0, crashes = 0, due_at = ${notAhead('$1::bigint')} - ${HEAD_START},
      run_at = NULL, error = NULL, finished_at = NULL, duration = NULL, ended_by = NULL
    WHERE delivery = (SELECT seq FROM deliveries WHERE id = $2) AND target = ANY ($3::text[])
      AND (SELECT count(*) FILTER (WHERE status = 'open') FROM jobs AS other WHERE other.delivery = jobs.delivery) = 0
    RETURNING seq`,
};
const REPLAY_UNHANDLED = {
  text: `
    INSERT INTO jobs (delivery, due_at, target, order_key)
    SELECT d.seq, ${notAhead('$1::bigint')}, job.target, job.order_key
    FROM deliveries AS d, unnest($3::text[], $4::text[]) WITH ORDINALITY AS job (target, order_key, nth)
    WHERE d.id = $2 AND NOT EXISTS (SELECT 1 FROM jobs WHERE delivery = d.seq)
    ORDER BY nth RETURNING seq`,
};
const DISCARD = {
  text: `
    UPDATE jobs SET status = 'discarded', finished_at = $1, owner = NULL
    WHERE delivery = (SELECT seq FROM deliveries WHERE id = $2) AND status IN ('open', 'dead') RETURNING seq`,
};

/** The delivery log in PostgreSQL. */
export class PostgresDeliveryLog extends DatabaseDeliveryLog {
  /** Each change uses a connection. */
  readonly maxChanges = 12;
  protected override readonly encode = storable;
  protected override readonly encodeKey = storableKey<string>;
  protected override readonly decode = stored;
  readonly #server: Server;
  readonly #notifier: Notifier;
  readonly #observer: DatabaseObserver;

  constructor(server: Server, notifier: Notifier, observer: DatabaseObserver) {
    super({
      exact: 'd.id = $1',
      range: 'SELECT id FROM deliveries WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3',
      body: 'd.body',
      size: 'octet_length(d.body)',
      contains: `position(convert_to(CAST($9 AS text), 'UTF8') IN d.body) > 0`,
    });
    this.#server = server;
    this.#notifier = notifier;
    this.#observer = observer;
  }

  protected read(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#server.readAlone({ text }, values);
  }

  protected override awaitEarlier(): Promise<void> {
    return awaitEarlierWriters(this.#server);
  }

  async replay(id: string, jobs: readonly ReplayedJob[], now: number): Promise<boolean> {
    const targets = jobs.map(({ target }) => storable(target));
    const keys = jobs.map(({ orderKey }) => storableKey(orderKey));
    const name = storable(id);
    const replacements = jobs.flatMap(({ target, orderKey, replaces }) =>
      replaces === undefined
        ? []
        : [[REPLACE_TARGET, [name, storable(replaces), storable(target), storableKey(orderKey)]] as const],
    );
    const results = await singleWrite(this.#observer, () =>
      this.#server.transaction([
        [LOCK, [name]],
        ...replacements,
        [{ text: KEEP_SUCCESSES }, [name, targets]],
        [REPLAY_JOBS, [now, name, targets]],
        [REPLAY_UNHANDLED, [now, name, targets, keys]],
      ]),
    );
    const [reopened = [], added = []] = results.slice(-2);
    if (reopened.length + added.length === 0) return false;
    this.#notifier.notify('work');
    return true;
  }

  async discard(id: string, now: number): Promise<boolean> {
    const values = [now, storable(id)];
    return (await singleWrite(this.#observer, () => this.#server.write(DISCARD, values))).length > 0;
  }
}
