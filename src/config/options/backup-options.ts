import { count, text } from './option.ts';

/** Milliseconds of the units of an interval. */
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The options of scheduled backups. */
export const backupOptions = {
  'backup.every': text({
    env: 'BACKUP_EVERY',
    unset: 'none are made',
    placeholder: 'interval',
    expected: 'an interval like 15m, 6h or 1d',
    pattern: /^[1-9]\d{0,3}[mhd]$/,
    description: 'Interval of the backups of an SQLite database while the service runs: 15m, 6h, 1d.',
  }),
  'backup.folder': text({
    env: 'BACKUP_FOLDER',
    default: 'backups',
    placeholder: 'folder',
    description: 'Folder of the backups; created when it is missing.',
  }),
  'backup.keep': count({
    env: 'BACKUP_KEEP',
    default: 7,
    min: 1,
    description: 'Number of backups to keep; a new one replaces the oldest.',
  }),
} as const;

/** The milliseconds of an interval that the option takes. */
export function intervalOf(text: string): number {
  return Number(text.slice(0, -1)) * (UNITS[text.slice(-1)] ?? Number.NaN);
}
