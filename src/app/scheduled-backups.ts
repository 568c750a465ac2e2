import { intervalOf } from '../config/options/backup-options.ts';
import type { Settings } from '../config/options/options.ts';
import { backupFileOf } from '../database/backup/backup-file.ts';
import { ScheduledBackups } from '../database/backup/scheduled-backups.ts';
import type { Loggers } from '../observability/log/loggers.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';

/** The backups that the configuration schedules; undefined when it schedules none. */
export function scheduledBackups(
  settings: Settings,
  { loggers, metrics }: { readonly loggers: Loggers; readonly metrics: Metrics },
): ScheduledBackups | undefined {
  const { 'backup.every': every, 'backup.folder': folder, 'backup.keep': keep } = settings;
  if (every === undefined) return undefined;
  return new ScheduledBackups({
    file: backupFileOf(settings['database.url'], 'pg_dump'),
    plan: { every: intervalOf(every), folder, keep },
    log: loggers.child('backup'),
    metrics,
  });
}
