import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { SLOTS } from './layouts.ts';

const LOCKS = `
  SELECT relation::regclass || ' ' || mode FROM pg_locks
  WHERE pid = pg_backend_pid() AND relation IS NOT NULL AND mode IN ('AccessExclusiveLock', 'ShareUpdateExclusiveLock')
    AND relation::regclass::text LIKE 'delivery_bodies%'`;

/**
 * Drops days of bodies in every way, from the one of `slot` on, while `work` runs on another connection. Resolves to the
 * time that each took, the longest piece of work meanwhile, and the locks.
 */
export async function dropDays(
  client: pg.Client,
  slot: number,
  work: () => Promise<unknown>,
): Promise<readonly string[]> {
  const table = (i: number) => `delivery_bodies_${(slot + i) % SLOTS}`;
  const ways = [
    ['TRUNCATE', `TRUNCATE ${table(0)}`],
    ['DROP', `DROP TABLE ${table(1)}`],
    ['DETACH', `ALTER TABLE delivery_bodies DETACH PARTITION ${table(2)}`],
    ['default', 'CREATE TABLE delivery_bodies_default PARTITION OF delivery_bodies DEFAULT'],
    ['CREATE', `CREATE TABLE delivery_bodies_next PARTITION OF delivery_bodies FOR VALUES IN (99)`],
  ] as const;
  let longest = 0;
  let stopped = false;
  const working = (async () => {
    while (!stopped) {
      const started = performance.now();
      await work();
      longest = Math.max(longest, performance.now() - started);
    }
  })();
  const lines: string[] = [];
  const during = async () => {
    await delay(500);
    const longestNow = longest;
    longest = 0;
    return longestNow.toFixed(1);
  };
  for (const [label, text] of ways) {
    const quiet = await during();
    const started = performance.now();
    await client.query(`BEGIN; ${text}`);
    const done = performance.now();
    const { rows } = await client.query<unknown[]>({ text: LOCKS, rowMode: 'array' });
    const noted = performance.now();
    await client.query('COMMIT');
    const took = (done - started + performance.now() - noted).toFixed(1);
    const busy = await during();
    lines.push(`${label}: ${took} ms, longest append ${busy} ms (before: ${quiet}); ${rows.join(', ')}`);
  }
  stopped = true;
  await working;
  return lines;
}
