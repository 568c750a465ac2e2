import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ExportFormat } from '../../relations/lists.ts';
import { USERS } from '../../relations/relation.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import type { Command, CommandIo, CommandUsage } from '../command.ts';
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
import { type Collection, openCollection } from './collection.ts';

/** Interval between two records of the position, in milliseconds. */
const RECORD_INTERVAL = 1_000;

const OPTIONS = {
  '--format <word>': 'Format: csv or ndjson. [default: by the name of the file, or ndjson]',
  '--restart': 'Starts an interrupted export over.',
  '--json': 'Prints one JSON document instead of text; needs a file.',
};
const ABOUT =
  'into a file, or to standard output. An interrupted export continues if you run it again with the same file; until ' +
  'it is complete, the lines are in a file with .part after its name.';

/** `portico users export`. Resolves to the exit code: 0, 130 when interrupted. */
export const exportUsers: Command = {
  usage: {
    topic: 'users export',
    words: '[file] [options]',
    maxWords: 1,
    about: `Writes all users ${ABOUT}`,
    options: OPTIONS,
    examples: ['portico users export users.csv'],
  },
  async run(argv, io) {
    const args = readArguments(exportUsers.usage, argv, io);
    const [file] = args.words;
    return exportRowsOf(args, exportUsers.usage, { name: USERS, file }, io);
  },
};

/** `portico export`, for any relation. */
export const exportRows: Command = {
  usage: {
    topic: 'export',
    words: '[relation] [file] [options]',
    maxWords: 2,
    about: `Writes all rows of a declared relation, by default users, ${ABOUT}`,
    options: OPTIONS,
    examples: ['portico export books books.csv'],
  },
  async run(argv, io) {
    const args = readArguments(exportRows.usage, argv, io);
    const [first = USERS, second] = args.words;
    // One word is a relation, or a file if it looks like one.
    const isFile = second === undefined && extname(first) !== '';
    const asked = isFile ? { name: USERS, file: first } : { name: first, file: second };
    return exportRowsOf(args, exportRows.usage, asked, io);
  },
};

interface AskedExport {
  readonly name: string;
  readonly file: string | undefined;
}

async function exportRowsOf(
  args: CommandArguments,
  { topic }: CommandUsage,
  { name, file }: AskedExport,
  io: CommandIo,
): Promise<number> {
  const format = formatOf(args, file);
  if (file === undefined && args.has('--json')) throw args.misuse(`--json needs a file for the ${name}`);
  await using collection = await openCollection(await args.configuration(), name, args, topic);
  using signal = interruption(io);
  if (file === undefined) return await toOutput(io, collection, format, signal);
  const { rows, resumed, isComplete } = await toFile(
    io,
    collection,
    { path: file, format, restart: args.has('--restart') },
    signal,
  );
  const [one, many] = collection.nouns;
  if (args.has('--json')) await printJson(io, { complete: isComplete, [many]: rows, resumed });
  else if (isComplete) await print(io, `Exported ${counted(rows, one, many)}.\n`);
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
  collection: Collection,
  format: ExportFormat,
  signal: AbortSignal,
): Promise<number> {
  await printData(io, collection.head(format));
  const upTo = await collection.end();
  if (upTo === undefined) return 0;
  for await (const { bytes } of collection.pieces(format, undefined, upTo)) {
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
  collection: Collection,
  { path, format, restart }: FileExport,
  signal: AbortSignal,
) {
  const upTo = await collection.end();
  const fresh: ExportPosition = { of: collection.name, format, bytes: 0, rows: 0, last: undefined, upTo };
  await using file = await ExportFile.open(path, fresh, restart);
  const { last, bytes, rows: resumed } = file.position;
  if (bytes === 0) await file.append(Buffer.from(collection.head(format)), 0, undefined);
  const [, many] = collection.nouns;
  const title = `${many.replace(/^./, (letter) => letter.toUpperCase())} exported:`;
  using progress = showProgress(io, title, await collection.count());
  let recordedAt = performance.now();
  const end = file.position.upTo;
  for await (const page of end === undefined ? [] : collection.pieces(format, last, end)) {
    await file.append(page.bytes, page.count, page.last);
    progress.update(file.position.rows);
    if (signal.aborted) {
      await file.record();
      return { rows: file.position.rows, resumed, isComplete: false };
    }
    if (performance.now() - recordedAt < RECORD_INTERVAL) continue;
    await file.record();
    recordedAt = performance.now();
  }
  await file.complete();
  return { rows: file.position.rows, resumed, isComplete: true };
}

/** Rows may be personal data: only the owner may read the file, whatever the umask allows. */
const PRIVATE = 0o600;

/** How far an export has come. */
interface ExportPosition {
  /** The name of the collection. */
  readonly of: string;
  readonly format: ExportFormat;
  readonly bytes: number;
  readonly rows: number;
  /** The place of the last row in the file, and of the last row to export. */
  readonly last: string | number | undefined;
  readonly upTo: string | number | undefined;
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
    const isSame = found?.format === fresh.format && found.of === fresh.of;
    const position = isSame ? found : fresh;
    const file = await open(partOf(path), position === fresh ? 'w' : 'r+', PRIVATE);
    await file.chmod(PRIVATE);
    await file.truncate(position.bytes);
    return new ExportFile(path, file, position);
  }

  get position(): ExportPosition {
    return this.#position;
  }

  /** Appends bytes that contain the rows up to `last`. */
  async append(bytes: Uint8Array, rows: number, last: ExportPosition['last']): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const place = this.#position.bytes + at;
      at += (await this.#file.write(bytes, at, bytes.length - at, place)).bytesWritten;
    }
    const before = this.#position;
    this.#position = { ...before, bytes: before.bytes + bytes.length, rows: before.rows + rows, last };
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
