import { existsSync } from 'node:fs';
import { backupFileOf } from '../database/backup/backup-file.ts';
import { restoreBackup } from '../database/backup/restore-backup.ts';
import { readArguments } from './argv/command-arguments.ts';
import { describeCopy } from './backup.ts';
import { usages } from './help/usages.ts';
import { confirmed } from './terminal/confirm.ts';
import { showCopy } from './terminal/copy-progress.ts';
import { INTERRUPTED, interruption } from './terminal/interruption.ts';
import { endWithReader, note, print, printJson } from './terminal/output.ts';

/**
 * `portico restore`. Resolves to the exit code: 0 when the database is that of the backup, 1 when it was not confirmed,
 * 130 when interrupted. Rejects with UsageError, ConfigError, BackupError or DatabaseOpenError.
 */
export async function restoreCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.restore, argv);
  const [from] = args.words;
  if (from === undefined) throw args.misuse('restore needs the file of a backup');
  const { settings } = await args.configuration();
  const file = backupFileOf(
    settings['database.url'],
    `pg_restore --single-transaction --no-owner --dbname="$DATABASE_URL" ${from}   # into an empty database`,
  );
  endWithReader();
  using signal = interruption();
  const question = `Put ${from} in the place of ${file}, which is kept beside it?`;
  if (existsSync(file) && !args.has('--yes') && !(await confirmed(question, signal))) {
    note('Nothing was restored.');
    return signal.aborted ? INTERRUPTED : 1;
  }
  try {
    using shown = showCopy();
    const { bytes, rows, kept } = await restoreBackup(from, file, { onCopy: shown.onCopy, signal });
    if (args.has('--json')) {
      await printJson({ path: file, bytes, rows, kept: kept ?? null });
    } else {
      const before = kept === undefined ? '' : `The database that was there is ${kept}.\n`;
      await print(`Restored ${file}: ${describeCopy(bytes, rows)}.\n${before}`);
    }
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    note('Interrupted; the database is as it was.');
    return INTERRUPTED;
  }
}
