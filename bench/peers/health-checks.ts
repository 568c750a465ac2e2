import { statfs } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { openDatabase } from './sqlite.ts';

/** Minimum free space in bytes, and maximum p99 of the event loop delay in milliseconds, that are UP. */
const LEAST_FREE = 10 * 1024 * 1024;
const LONGEST_DELAY = 1_000;

/** Typical health checks: a statement prepared once, and all checks of one request run concurrently. */
export async function openChecks() {
  const db = await openDatabase('health.db');
  db.exec('CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY)');
  const query = db.prepare('SELECT 1 FROM users LIMIT 1');
  const delay = monitorEventLoopDelay();
  delay.enable();
  // Limits the window, so that old delays do not count.
  setInterval(() => delay.reset(), 10_000).unref();
  const up = (isUp: boolean) => (isUp ? 'UP' : 'DOWN');

  async function diskSpace() {
    const { bsize, blocks, bavail } = await statfs('.');
    const free = bsize * bavail;
    return { status: up(free >= LEAST_FREE), details: { total: bsize * blocks, free } };
  }
  async function database() {
    query.get();
    return { status: 'UP' };
  }
  async function eventLoop() {
    const p99Ms = Math.round(delay.percentile(99) / 1e6);
    return { status: up(p99Ms <= LONGEST_DELAY), details: { p99Ms } };
  }

  return async () => {
    const [db, disk, loop] = await Promise.all([database(), diskSpace(), eventLoop()]);
    const components = { db, diskSpace: disk, eventLoop: loop };
    return { status: up(Object.values(components).every(({ status }) => status === 'UP')), components };
  };
}
