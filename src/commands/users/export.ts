import { extname } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';
import { type ExportFormat, exportHead, userPages } from '../../users/user-pages.ts';
import { type CommandArguments, readArguments } from '../argv/command-arguments.ts';
import { usages } from '../help/usages.ts';
import { openExisting } from '../open-existing.ts';
import { INTERRUPTED, interruption } from '../terminal/interruption.ts';
import { counted, note, print, printData, printJson } from '../terminal/output.ts';
import { showProgress } from '../terminal/progress.ts';
import { ExportFile } from './export-file.ts';

/** How often the position is recorded, in milliseconds. */
const RECORD_INTERVAL = 1_000;

/** `portico users export`. Resolves to the exit code: 0, 130 when interrupted. */
export async function exportCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.usersExport, argv);
  const [file] = args.words;
  const format = formatOf(args, file);
  if (file === undefined && args.has('--json')) throw args.misuse('--json needs a file for the users');
  await using database = await openExisting(await args.configuration(), 'users export');
  using signal = interruption();
  if (file === undefined) return await toOutput(database.users, format, signal);
  const { users, resumed, isComplete } = await toFile(
    database.users,
    { path: file, format, restart: args.has('--restart') },
    signal,
  );
  if (args.has('--json')) await printJson({ complete: isComplete, users, resumed });
  else if (isComplete) await print(`Exported ${counted(users, 'user', 'users')}.\n`);
  if (isComplete) return 0;
  note('Interrupted. Run it again to go on.');
  return INTERRUPTED;
}

function formatOf(args: CommandArguments, file: string | undefined): ExportFormat {
  const name = args.value('--format') ?? (extname(file ?? '').toLowerCase() === '.csv' ? 'csv' : 'ndjson');
  if (name !== 'csv' && name !== 'ndjson') throw args.misuse('--format takes csv or ndjson');
  return name;
}

async function toOutput(
  users: DatabaseUserStore,
  format: ExportFormat,
  signal: AbortSignal,
): Promise<number> {
  await printData(exportHead(format));
  for await (const { bytes } of userPages(users, format, { after: 0, upTo: await users.lastId() })) {
    // Signals arrive in between.
    await nextTick();
    if (signal.aborted) return INTERRUPTED;
    await printData(bytes);
  }
  return 0;
}

interface FileExport {
  readonly path: string;
  readonly format: ExportFormat;
  readonly restart: boolean;
}

async function toFile(users: DatabaseUserStore, { path, format, restart }: FileExport, signal: AbortSignal) {
  const fresh = { format, bytes: 0, users: 0, lastId: 0, upTo: await users.lastId() };
  await using file = await ExportFile.open(path, fresh, restart);
  const { lastId: after, upTo, bytes, users: resumed } = file.position;
  if (bytes === 0) await file.append(Buffer.from(exportHead(format)), 0, 0);
  using progress = showProgress('Users exported:', await users.lists.count([]));
  let recordedAt = performance.now();
  for await (const page of userPages(users, format, { after, upTo })) {
    await file.append(page.bytes, page.count, page.lastId);
    progress.update(file.position.users);
    if (signal.aborted) {
      await file.record();
      return { users: file.position.users, resumed, isComplete: false };
    }
    if (performance.now() - recordedAt < RECORD_INTERVAL) continue;
    await file.record();
    recordedAt = performance.now();
  }
  await file.complete();
  return { users: file.position.users, resumed, isComplete: true };
}
