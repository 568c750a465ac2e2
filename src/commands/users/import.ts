import { setTimeout as delay } from 'node:timers/promises';
import { databaseAt } from '../../database/database-url.ts';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';
import { importTransaction } from '../../users/import/import-transaction.ts';
import { type ImportOutcome, type ImportRequest, importUsers } from '../../users/import/import-users.ts';
import { type CommandArguments, readArguments } from '../argv/command-arguments.ts';
import { usages } from '../help/usages.ts';
import { openExisting } from '../open-existing.ts';
import { INTERRUPTED, interruption } from '../terminal/interruption.ts';
import { note } from '../terminal/output.ts';
import { showProgress } from '../terminal/progress.ts';
import { bytesOf, digestOf, formatOf, sizeOf } from './import-file.ts';
import { ImportTally } from './import-tally.ts';

/** Why reading stops. */
const STOPPED = new Error('interrupted');

/** `portico users import`. Resolves to the exit code: 0, 1 when lines were refused, 130 when interrupted. */
export async function importCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.usersImport, argv);
  const [file] = args.words;
  if (file === undefined) throw args.misuse('users import needs a file, or - for standard input');
  const format = formatOf(file, args.value('--format'));
  const size = sizeOf(file);
  const config = await args.configuration();
  await using database = await openExisting(config, 'users import');
  using signal = interruption();
  const isSqlite = databaseAt(config.settings['database.url']).engine === 'sqlite';
  const users = isSqlite ? considerate(database.users) : database.users;
  const position = await positionOf(args, file, size, database.users);
  const tally = new ImportTally(position?.line ?? 0);
  {
    using progress = showProgress('Bytes imported:', size);
    let bytes = 0;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for await (const chunk of bytesOf(file ?? '-')) {
        if (signal.aborted) throw STOPPED;
        yield chunk;
        bytes += chunk.length;
        progress.update(bytes);
      }
      if (signal.aborted) throw STOPPED;
    }
    const request: ImportRequest = { users, chunks: chunks(), format, position };
    try {
      for await (const outcomes of args.has('--transaction') ? once(request) : importUsers(request)) {
        tally.add(outcomes);
      }
    } catch (error) {
      if (error !== STOPPED) {
        note(tally.soFar());
        throw error;
      }
    }
  }
  await tally.print(args.has('--json'), signal.aborted);
  if (signal.aborted) {
    note(position === undefined ? 'Interrupted.' : 'Interrupted. Run it again to go on.');
    return INTERRUPTED;
  }
  return tally.refused > 0 ? 1 : 0;
}

async function* once(request: ImportRequest): AsyncGenerator<readonly ImportOutcome[]> {
  yield await importTransaction(request);
}

/** The recorded position of the import; undefined where it has no name to be found again. */
async function positionOf(
  args: CommandArguments,
  file: string,
  size: number | undefined,
  users: DatabaseUserStore,
): Promise<ImportRequest['position']> {
  if (args.has('--again')) {
    if (args.has('--key')) throw args.misuse('--again and --key exclude each other');
    return undefined;
  }
  const key = args.value('--key') ?? (size === undefined ? undefined : await digestOf(file));
  // No key of a request has a space.
  return key === undefined ? undefined : { key: `cli ${key}`, ...(await users.beginImport(`cli ${key}`)) };
}

/** Leaves the file to a service's writes for as long as each batch took; the next one is read meanwhile. */
function considerate(users: DatabaseUserStore): Pick<DatabaseUserStore, 'importUsers' | 'importAll'> {
  let free = Promise.resolve();
  return {
    async importUsers(batch, mark) {
      await free;
      const began = performance.now();
      try {
        return await users.importUsers(batch, mark);
      } finally {
        free = delay(performance.now() - began);
      }
    },
    importAll: (all, mark) => users.importAll(all, mark),
  };
}
