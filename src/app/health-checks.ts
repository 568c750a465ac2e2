import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Config } from '../config/load.ts';
import type { Database } from '../database/database.ts';
import { databaseCheck, writerCheck } from '../database/database-checks.ts';
import { backlogCheck } from '../inbox/observability/backlog-check.ts';
import { diskSpaceCheck } from '../observability/health/disk-space-check.ts';
import { eventLoopCheck } from '../observability/health/event-loop-check.ts';
import type { HealthIndicator } from '../observability/health/health.ts';
import { EventLoopWindows } from '../observability/runtime/event-loop-windows.ts';
import { webhookSettings } from './doors/webhook-door.ts';
import type { Parts } from './parts.ts';

/**
 * Default time to live of the results of built-in checks, in milliseconds. A stale result is served while the check
 * runs, for up to ten times as long.
 */
const TTL = 1_000;

/** The delay of the event loop is that of the last one to two windows, in milliseconds. */
const DELAY_WINDOW = 10_000;

/** The checks of what this process uses, and those of the configuration. */
export function healthChecks(parts: Parts): readonly HealthIndicator[] {
  const { settings, code } = parts.config;
  const database = parts.openedDatabase();
  const delay = parts.onStop(new EventLoopWindows(DELAY_WINDOW));
  const builtIn = [
    ...(database === undefined ? [] : storeChecks(database)),
    diskSpaceCheck({
      path: dataFolder(settings['database.url'], database !== undefined),
      thresholdBytes: settings['management.diskThresholdBytes'],
    }),
    ...(parts.backups === undefined ? [] : [parts.backups.health]),
    eventLoopCheck(delay, settings['management.eventLoopThreshold']),
    ...(database === undefined || !settings.interfaces.includes('webhook')
      ? []
      : [backlogOf(database, parts.config)]),
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

/** A failed engine is DOWN at once: the process ends soon. */
function storeChecks(database: Database): readonly HealthIndicator[] {
  const checks = [databaseCheck(database), writerCheck(database)];
  return checks.map((check) => ({ ...check, cacheUntil: database.failed }));
}

/** The folder of the data when this process uses it, else the working folder. */
export function dataFolder(url: string, used: boolean): string {
  const [, place] = /^sqlite:(?!:memory:$)(.+)$/u.exec(url) ?? [];
  if (!used || place === undefined) return '.';
  // SQLite also opens URLs, such as `file:data.db` and `file:///var/lib/data.db`.
  return dirname(place.startsWith('file:') ? fileURLToPath(new URL(place, pathToFileURL('./'))) : place);
}
