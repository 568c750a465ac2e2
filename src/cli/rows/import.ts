import { createHash } from 'node:crypto';
import { createReadStream, type Stats, statSync } from 'node:fs';
import { extname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { printable } from '../../core/text.ts';
import {
  type ImportFormat,
  type ImportOutcome,
  type ImportRequest,
  type ImportTarget,
  importLines,
  importTransaction,
} from '../../relations/import.ts';
import type { BadLine } from '../../relations/import-readers.ts';
import { USERS } from '../../relations/relation.ts';
import { databaseAt } from '../../sql/database.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import { type Command, type CommandIo, type CommandUsage, JSON_OPTION } from '../command.ts';
import { counted, INTERRUPTED, interruption, note, print, printJson, showProgress } from '../terminal.ts';
import { type Collection, isCollection, openCollection } from './collection.ts';

/** The reason for which reading stops. */
const STOPPED = new Error('interrupted');

const OPTIONS = {
  '--format <word>': 'Format: csv, ndjson or json, which is an array. [default: by the name of the file]',
  '--transaction':
    'Stores all in one transaction, at most 50,000 users or rows, or none if a line is refused.',
  '--key <text>': 'Name under which the import can be resumed. [default: a digest of the file]',
  '--again': 'Imports the file again even if it was imported before.',
  ...JSON_OPTION,
};
const ABOUT =
  'from a file, or from standard input (-), whether or not a service runs on the database. Each line is validated ' +
  'like a single create; refused lines are listed, and the others are stored. Progress is recorded with what is ' +
  'stored: an interrupted import continues if you run it again with the same file, and an imported file is not ' +
  'imported again. Exit code 1: lines were refused.';

/** `portico users import`. Resolves to the exit code: 0, 1 when lines were refused, 130 when interrupted. */
export const importUsers: Command = {
  usage: {
    topic: 'users import',
    words: '<file> [options]',
    maxWords: 1,
    about: `Imports users ${ABOUT}`,
    options: OPTIONS,
    examples: [
      'portico users import users.csv',
      'zcat users.ndjson.gz | portico users import - --format ndjson',
    ],
  },
  run: (argv, io) => run(importUsers.usage, argv, io),
};

/** `portico import`, for any relation. */
export const importRows: Command = {
  usage: {
    topic: 'import',
    words: '[relation] <file> [options]',
    maxWords: 2,
    about: `Imports rows of a declared relation, by default users, ${ABOUT}`,
    options: OPTIONS,
    examples: [
      'portico import books books.csv',
      'zcat books.ndjson.gz | portico import books - --format ndjson',
    ],
  },
  run: (argv, io) => run(importRows.usage, argv, io),
};

async function run(usage: CommandUsage, argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(usage, argv, io);
  const { topic } = usage;
  const [first, second] = args.words;
  const [name, file] = second === undefined ? [USERS, first] : [first ?? '', second];
  if (file === undefined) throw args.misuse(`${topic} needs a file, or - for standard input`);
  const config = await args.configuration();
  if (topic === 'import' && second === undefined && isCollection(config, file)) {
    throw args.misuse(`import ${file} needs a file, or - for standard input`);
  }
  const format = formatOf(args, file);
  const size = sizeOf(args, file);
  await using collection = await openCollection(config, name, args, topic);
  using signal = interruption(io);
  const isSqlite = databaseAt(config.settings['database.url']).engine === 'sqlite';
  const target = isSqlite ? considerate(collection.target) : collection.target;
  const position = await positionOf(args, file, size, collection);
  const tally = new ImportTally(position?.line ?? 0, collection.nouns);
  {
    using progress = showProgress(io, 'Bytes imported:', size);
    const input = file === '-' ? io.stdin : bytesOf(file);
    let bytes = 0;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for await (const chunk of input) {
        if (signal.aborted) throw STOPPED;
        yield chunk;
        bytes += chunk.length;
        progress.update(bytes);
      }
      if (signal.aborted) throw STOPPED;
    }
    const request: ImportRequest<unknown, unknown> = { target, chunks: chunks(), format, position };
    try {
      for await (const outcomes of args.has('--transaction') ? once(request) : importLines(request)) {
        tally.add(outcomes);
      }
    } catch (error) {
      if (error !== STOPPED) {
        note(io, tally.soFar());
        throw error;
      }
    }
  }
  await tally.print(io, args.has('--json'), signal.aborted);
  if (signal.aborted) {
    note(io, position === undefined ? 'Interrupted.' : 'Interrupted. Run it again to resume.');
    return INTERRUPTED;
  }
  return tally.refused > 0 ? 1 : 0;
}

async function* once<Row, Id>(request: ImportRequest<Row, Id>): AsyncGenerator<readonly ImportOutcome<Id>[]> {
  yield await importTransaction(request);
}

/** The recorded position of the import; undefined if the import has no name by which to find it again. */
async function positionOf(
  args: CommandArguments,
  file: string,
  size: number | undefined,
  collection: Collection,
): Promise<ImportRequest<unknown, unknown>['position']> {
  if (args.has('--again')) {
    if (args.has('--key')) throw args.misuse('--again and --key exclude each other');
    return undefined;
  }
  const key = args.value('--key') ?? (size === undefined ? undefined : await digestOf(file));
  // A request's Idempotency-Key contains no space, so these keys cannot collide with it.
  return key === undefined ? undefined : collection.beginImport(`cli ${key}`);
}

/** Leaves the database to a service's writes for as long as each batch took. */
function considerate<Row, Id>(target: ImportTarget<Row, Id>): ImportTarget<Row, Id> {
  let free = Promise.resolve();
  return {
    ...target,
    async store(rows, checkpoint) {
      await free;
      const began = performance.now();
      try {
        return await target.store(rows, checkpoint);
      } finally {
        free = delay(performance.now() - began);
      }
    },
  };
}

const FORMATS: Readonly<Record<string, ImportFormat>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'array',
};
const CHUNK = 256 * 1024;

/** The format of an import: that of `--format`, or of the file's extension. Throws UsageError. */
function formatOf(args: CommandArguments, file: string): ImportFormat {
  const given = args.value('--format');
  const format = FORMATS[given ?? extname(file).slice(1).toLowerCase()];
  if (format !== undefined) return format;
  throw args.misuse(
    given === undefined
      ? 'The file name does not tell the format; add --format csv, ndjson or json'
      : '--format takes csv, ndjson or json',
  );
}

/** The size of a file in bytes; undefined for standard input. Throws UsageError. */
function sizeOf(args: CommandArguments, file: string): number | undefined {
  if (file === '-') return undefined;
  let stats: Stats;
  try {
    stats = statSync(file);
  } catch (error) {
    throw args.misuse(`The file cannot be read: ${(error as Error).message}`);
  }
  return stats.isFile() ? stats.size : undefined;
}

function bytesOf(file: string): AsyncIterable<Uint8Array> {
  return createReadStream(file, { highWaterMark: CHUNK });
}

/** A name for the content of a file. */
async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of bytesOf(file)) hash.update(chunk);
  return `file:${hash.digest('hex')}`;
}

/** Maximum number of refused lines that are listed, in text and in JSON. */
const NAMED = 20;
const MAX_EXAMPLES = 10_000;

/** Counts the created rows and refused lines of an import. */
class ImportTally {
  readonly #skipped: number;
  readonly #nouns: Collection['nouns'];
  readonly #examples: BadLine[] = [];
  #created = 0;
  #refused = 0;

  /** `skipped` is the last line that an earlier run has stored. */
  constructor(skipped: number, nouns: Collection['nouns']) {
    this.#skipped = skipped;
    this.#nouns = nouns;
  }

  get refused(): number {
    return this.#refused;
  }

  add(outcomes: readonly ImportOutcome<unknown>[]): void {
    for (const outcome of outcomes) {
      if ('id' in outcome) this.#created++;
      else if (this.#refused++ < MAX_EXAMPLES) this.#examples.push(outcome);
    }
  }

  /** Describes what has been stored so far. */
  soFar(): string {
    return `Imported ${counted(this.#created, ...this.#nouns)} before it stopped.`;
  }

  async print(io: CommandIo, asJson: boolean, isInterrupted: boolean): Promise<void> {
    if (asJson) {
      const { created, refused, skipped, examples } = {
        created: this.#created,
        refused: this.#refused,
        skipped: this.#skipped,
        examples: this.#examples,
      };
      await printJson(io, { complete: !isInterrupted, created, refused, skipped, examples });
      return;
    }
    for (const { line, reason } of this.#examples.slice(0, NAMED))
      note(io, `Line ${line}: ${printable(reason)}.`);
    if (this.#refused > NAMED) note(io, `And ${(this.#refused - NAMED).toLocaleString('en-US')} more.`);
    if (this.#skipped > 0) {
      note(
        io,
        `Resumed after line ${this.#skipped.toLocaleString('en-US')}, where the previous import ended.`,
      );
    }
    const refused = this.#refused === 0 ? '' : `, refused ${counted(this.#refused, 'line', 'lines')}`;
    await print(io, `Imported ${counted(this.#created, ...this.#nouns)}${refused}.\n`);
  }
}
