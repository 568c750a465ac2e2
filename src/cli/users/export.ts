import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type ExportFormat, exportHead, userPages } from '../../relations/lists.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { openExisting } from '../database/open.ts';
import {
  counted,
  INTERRUPTED,
  interruption,
  note,
  print,
  printData,
  printJson,
  showProgress,
} from '../terminal.ts';

/** Interval between two records of the position, in milliseconds. */
const RECORD_INTERVAL = 1_000;

/** `portico users export`. Resolves to the exit code: 0, 130 when interrupted. */
export const exportCommand: Command = {
  usage: {
    topic: 'users export',
    words: '[file] [options]',
    maxWords: 1,
    about:
      'Writes all users into a file, or to standard output. An interrupted export continues if you run it again with ' +
      'the same file; until it is complete, the users are in a file with .part after its name.',
    options: {
      '--format <word>': 'Format: csv or ndjson. [default: by the name of the file, or ndjson]',
      '--restart': 'Starts an interrupted export over.',
      '--json': 'Prints one JSON document instead of text; needs a file.',
    },
    examples: ['portico users export users.csv'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(exportCommand.usage, argv, io);
  const [file] = args.words;
  const format = formatOf(args, file);
  if (file === undefined && args.has('--json')) throw args.misuse('--json needs a file for the users');
  await using database = await openExisting(await args.configuration(), 'users export');
  using signal = interruption(io);
  if (file === undefined) return await toOutput(io, database.users, format, signal);
  const { users, resumed, isComplete } = await toFile(
    io,
    database.users,
    { path: file, format, restart: args.has('--restart') },
    signal,
  );
  if (args.has('--json')) await printJson(io, { complete: isComplete, users, resumed });
  else if (isComplete) await print(io, `Exported ${counted(users, 'user', 'users')}.\n`);
  if (isComplete) return 0;
  note(io, 'Interrupted. Run it again to resume.');
  return INTERRUPTED;
}

function formatOf(args: CommandArguments, file: string | undefined): ExportFormat {
  const name = args.value('--format') ?? (extname(file ?? '').toLowerCase() === '.csv' ? 'csv' : 'ndjson');
  if (name !== 'csv' && name !== 'ndjson') throw args.misuse('--format takes csv or ndjson');
  return name;
}

async function toOutput(
  io: CommandIo,
  users: DatabaseUserStore,
  format: ExportFormat,
  signal: AbortSignal,
): Promise<number> {
  await printData(io, exportHead(format));
  for await (const { bytes } of userPages(users, format, { after: 0, upTo: await users.lastId() })) {
    // Lets signals arrive.
    await nextTick();
    if (signal.aborted) return INTERRUPTED;
    await printData(io, bytes);
  }
  return 0;
}

interface FileExport {
  readonly path: string;
  readonly format: ExportFormat;
  readonly restart: boolean;
}

async function toFile(
  io: CommandIo,
  users: DatabaseUserStore,
  { path, format, restart }: FileExport,
  signal: AbortSignal,
) {
  const fresh = { format, bytes: 0, users: 0, lastId: 0, upTo: await users.lastId() };
  await using file = await ExportFile.open(path, fresh, restart);
  const { lastId: after, upTo, bytes, users: resumed } = file.position;
  if (bytes === 0) await file.append(Buffer.from(exportHead(format)), 0, 0);
  using progress = showProgress(io, 'Users exported:', await users.lists.count([]));
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

/** Users are personal data: only the owner may read the file, whatever the umask allows. */
const PRIVATE = 0o600;

/** How far an export has come. */
interface ExportPosition {
  readonly format: ExportFormat;
  readonly bytes: number;
  readonly users: number;
  /** The id of the last user in the file, and of the last user to export. */
  readonly lastId: number;
  readonly upTo: number;
}

/**
 * A file that is written in pieces. Until it is complete it has another name, and a position beside it that
 * is never ahead of the data on the disk; resuming cuts off whatever follows the position.
 */
class ExportFile implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;
  #position: ExportPosition;

  private constructor(path: string, file: FileHandle, position: ExportPosition) {
    this.#path = path;
    this.#file = file;
    this.#position = position;
  }

  /** Resumes an interrupted export, or begins one at `fresh`. */
  static async open(path: string, fresh: ExportPosition, restart: boolean): Promise<ExportFile> {
    const found = restart ? undefined : await positionOf(path);
    const position = found?.format === fresh.format ? found : fresh;
    const file = await open(partOf(path), position === fresh ? 'w' : 'r+', PRIVATE);
    await file.chmod(PRIVATE);
    await file.truncate(position.bytes);
    return new ExportFile(path, file, position);
  }

  get position(): ExportPosition {
    return this.#position;
  }

  /** Appends bytes that contain the users up to `lastId`. */
  async append(bytes: Buffer, users: number, lastId: number): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const place = this.#position.bytes + at;
      at += (await this.#file.write(bytes, at, bytes.length - at, place)).bytesWritten;
    }
    const before = this.#position;
    this.#position = { ...before, bytes: before.bytes + bytes.length, users: before.users + users, lastId };
  }

  /** Records the position once the data before it is on the disk. */
  async record(): Promise<void> {
    await this.#file.sync();
    const beside = `${partOf(this.#path)}.json`;
    await writeFile(`${beside}.new`, `${JSON.stringify(this.#position)}\n`, { flush: true, mode: PRIVATE });
    await rename(`${beside}.new`, beside);
  }

  /** Gives the file its final name. */
  async complete(): Promise<void> {
    await this.#file.sync();
    await rename(partOf(this.#path), this.#path);
    await rm(`${partOf(this.#path)}.json`, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

function partOf(path: string): string {
  return `${path}.part`;
}

async function positionOf(path: string): Promise<ExportPosition | undefined> {
  try {
    return JSON.parse(await readFile(`${partOf(path)}.json`, 'utf8')) as ExportPosition;
  } catch {
    return undefined;
  }
}
