import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Config } from '../config/load.ts';
import { backlogCheck } from '../inbox/health.ts';
import { maskSecrets } from '../management/masking.ts';
import type { Database } from '../sql/database.ts';
import { databaseCheck, writerCheck } from '../sql/open.ts';
import {
  diskSpaceCheck,
  eventLoopCheck,
  type HealthIndicator,
  type HealthStatus,
  type OnChecked,
} from '../telemetry/health.ts';
import { EventLoopWindows } from '../telemetry/runtime.ts';
import type { AppContext } from './context.ts';
import { webhookSettings } from './webhook-door.ts';

/**
 * Default time to live of the results of built-in checks, in milliseconds. A stale result is served while the
 * check runs, for up to ten times as long.
 */
const TTL = 1_000;

/** Window of the event loop's delay, in milliseconds; the check looks at the last one to two windows. */
const DELAY_WINDOW = 10_000;

/** The checks of the resources that this process uses, and those of the configuration. */
export function healthChecks(context: AppContext): readonly HealthIndicator[] {
  const { settings, code } = context.config;
  const database = context.openedDatabase();
  const delay = context.onStop(new EventLoopWindows(DELAY_WINDOW));
  const builtIn = [
    ...(database === undefined ? [] : storeChecks(database)),
    diskSpaceCheck({
      path: dataFolder(settings['database.url'], database !== undefined),
      thresholdBytes: settings['management.diskThresholdBytes'],
    }),
    ...(context.backups === undefined ? [] : [context.backups.health]),
    eventLoopCheck(delay, settings['management.eventLoopThreshold']),
    ...(database === undefined || !settings.interfaces.includes('webhook')
      ? []
      : [backlogOf(database, context.config)]),
  ];
  const own = Array.from(code.healthChecks, ([name, { check, timeout, ttl, critical }]) => {
    return { name, check, timeoutMs: timeout, ttlMs: ttl, critical };
  });
  return [...builtIn.map((check) => ({ ttlMs: TTL, ...check })), ...own];
}

function backlogOf({ inbox }: Database, config: Config): HealthIndicator {
  const { threshold, down } = webhookSettings(config).deadAlert;
  const thresholdMs = config.settings['management.backlogThreshold'];
  return backlogCheck(inbox, { thresholdMs, deadThreshold: threshold, downWhenDead: down });
}

/** Reports a failed engine as DOWN at once, because the process is about to end. */
function storeChecks(database: Database): readonly HealthIndicator[] {
  const checks = [databaseCheck(database), writerCheck(database)];
  return checks.map((check) => ({ ...check, cacheUntil: database.failed }));
}

/** The folder of the database if this process uses one, else the working folder. */
export function dataFolder(url: string, used: boolean): string {
  const [, place] = /^sqlite:(?!:memory:$)(.+)$/u.exec(url) ?? [];
  if (!used || place === undefined) return '.';
  // SQLite also opens URLs, such as `file:data.db` and `file:///var/lib/data.db`.
  return dirname(place.startsWith('file:') ? fileURLToPath(new URL(place, pathToFileURL('./'))) : place);
}

/** Threshold above which a check is logged as slow, in milliseconds. */
const SLOW = 10_000;

/** Times the runs of health checks, and logs when a status changes. */
export function healthWatch({ metrics, log }: Pick<AppContext, 'metrics' | 'log'>): OnChecked {
  const timer = metrics.timer('health.check', { description: 'Runs of health checks', tags: ['check'] });
  const last = new Map<string, HealthStatus>();
  return (check, { status, details }, durationMs) => {
    timer.with('check', check).record(durationMs / 1_000);
    if (durationMs > SLOW) log.warn({ check, durationMs: Math.round(durationMs) }, 'health check slow');
    const before = last.get(check) ?? 'UP';
    last.set(check, status);
    if (status === before) return;
    if (status === 'UP') log.info({ check }, 'health check up again');
    else log.warn({ check, status, ...reason(details) }, 'health check failed');
  };
}

/** The details that give the reason. */
function reason({ error, code }: Readonly<Record<string, unknown>> = {}) {
  // Drivers' messages quote the URL that they could not connect to.
  return { error: typeof error === 'string' ? maskSecrets(error) : undefined, code };
}
