import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { loadConfig } from '../../src/app/load-config.ts';
import { createService } from '../../src/app/service.ts';
import { ScheduledBackups } from '../../src/sql/backup/scheduled.ts';
import { addReplicaCounter } from '../../src/sql/open.ts';
import type { Meter } from '../../src/telemetry/meters.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { addJvmMetrics } from '../../src/telemetry/runtime.ts';

/** A meter of the service; `needs` is what it depends on, undefined if nothing. */
export interface ListedMeter extends Omit<Meter, 'series'> {
  readonly needs: string | undefined;
}

/** All meters of a service with all doors, by name. Some exist only on Linux. */
export async function listMeters(): Promise<readonly ListedMeter[]> {
  const cwd = mkdtempSync(join(tmpdir(), 'portico-meters-'));
  const logStream = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    const env = { DATABASE_URL: 'sqlite::memory:' };
    await using service = await createService(await loadConfig({ argv: [], env, cwd }), { logStream });
    // Some meters are declared when the plugins of a door are loaded; no door listens.
    await Promise.all(Object.values(service.doors).map((door) => door.ready()));
    const { metrics, log } = service;
    const found = new Map<string, string | undefined>();
    const note = (needs: string | undefined) => {
      for (const name of metrics.names()) if (!found.has(name)) found.set(name, needs);
    };
    note(undefined);
    new ScheduledBackups({ file: '', plan: { every: 1, folder: '', keep: 1 }, log, metrics });
    note('`BACKUP_EVERY`');
    addReplicaCounter(metrics, { replicaReads: () => 0 });
    note('`DATABASE_READ_URL`');
    using _jvm = addJvmMetrics(metrics);
    note('`SPRING_BOOT_ADMIN_URL`');
    const all = Array.from(found, ([name, needs]) => listed(metrics, name, needs));
    return [...all, overflowMeter()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

function listed(metrics: Metrics, wanted: string, needs: string | undefined): ListedMeter {
  const meter = metrics.meter(wanted);
  if (meter === undefined) throw new Error(`there is no meter ${wanted}`);
  const { name, type, description, unit, tagKeys, buckets } = meter;
  return { name, type, description, unit, tagKeys, buckets, needs };
}

/** The meter that is declared once another meter has too many series. */
function overflowMeter(): ListedMeter {
  using full = new Metrics({ maxSeries: 0 });
  const meter = full.counter('full', { description: '', tags: ['key'] });
  meter.with('key', 'any').increment();
  return listed(full, 'meters.overflow', 'a meter with 1,000 series');
}
