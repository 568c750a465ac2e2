import { parseDatabaseUrl } from '../../sql/database.ts';
import { MoveEnd } from '../../sql/move/end.ts';
import { type MoveReport, moveDatabase } from '../../sql/move/move.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import {
  counted,
  INTERRUPTED,
  interruption,
  note,
  type Progress,
  print,
  printJson,
  showProgress,
} from '../terminal.ts';

/**
 * `portico move`. Resolves to the exit code: 0 when the target holds everything and the comparison passed,
 * 130 when interrupted. Rejects with UsageError, ConfigError, DatabaseOpenError or MoveError.
 */
export const move: Command = {
  usage: {
    topic: 'move',
    words: '--to <url> [options]',
    about:
      'Copies users and deliveries with their ids, jobs and order, and the rows of the relations that the configuration ' +
      'declares, into an empty database of any engine, and compares both. No service may run on either database meanwhile. To resume an interrupted move, run it again with the ' +
      'same arguments; until it is complete, no service starts on the target. The source stays unchanged.',
    options: {
      '--from <url>': 'Source: sqlite:<file> or postgres://... [default: the database of the configuration]',
      '--to <url>': 'Target: sqlite:<file>, created if missing, or postgres://...',
      '--restart': 'Deletes what an interrupted move has copied, and starts over.',
      ...JSON_OPTION,
    },
    secret: ['--from', '--to'],
    examples: [
      'portico move --from sqlite:portico.db --to postgres://portico@db/portico',
      'portico move --from postgres://portico@db/portico --to sqlite:portico.db',
    ],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(move.usage, argv, io);
  const [from, to] = await databases(args);
  using signal = interruption(io);
  const report = await moveShown(from, to, args, io, signal);
  const { resumed, alreadyComplete, tables } = report;
  if (args.has('--json')) {
    const complete = tables !== undefined;
    await printJson(io, { complete, resumed, alreadyComplete, tables: tables ?? null });
  } else if (tables === undefined) {
    note(
      io,
      'Interrupted. To resume, run it again with the same arguments; until it is complete, no service starts on the target.',
    );
  } else await print(io, describeMove(tables, alreadyComplete));
  return tables === undefined ? INTERRUPTED : 0;
}

/** The URLs of source and target. Rejects with UsageError or ConfigError, whose messages show neither URL. */
async function databases(args: CommandArguments): Promise<readonly [string, string]> {
  const to = args.value('--to');
  if (to === undefined) throw args.misuse('move needs --to, the database to move to');
  const from = args.value('--from') ?? (await args.configuration()).settings['database.url'];
  const unusable = Object.entries({ '--from': from, '--to': to }).filter(([, url]) => !isMovable(url));
  if (unusable.length > 0) {
    throw args.misuse(
      ...unusable.map(([flag]) => `${flag} is no database to move; expected sqlite:<file> or postgres://...`),
    );
  }
  return [from, to];
}

function isMovable(url: string): boolean {
  const place = parseDatabaseUrl(url)?.place ?? '';
  return place !== ':memory:' && place !== '';
}

/** Moves, and shows a line of progress for each step. */
async function moveShown(
  from: string,
  to: string,
  args: CommandArguments,
  io: CommandIo,
  signal: AbortSignal,
): Promise<MoveReport> {
  await using source = await MoveEnd.open(from, 'source', async () => (await args.configuration()).relations);
  await using target = await MoveEnd.open(to, 'target', () => source.relations);
  const left = await source.left();
  if (left.length > 0) {
    note(
      io,
      `Relations and columns that the configuration does not declare are not moved: ${left.join(', ')}.`,
    );
  }
  using shown = new DisposableStack();
  const lines = new Map<string, Progress>();
  return await moveDatabase(source, target, {
    signal,
    restart: args.has('--restart'),
    onProgress(step, done, total) {
      const doing = step === 'copy' ? 'Moving rows:' : 'Comparing rows:';
      const line = lines.get(step) ?? shown.use(showProgress(io, doing, total));
      lines.set(step, line);
      line.update(done);
    },
  });
}

function describeMove(tables: NonNullable<MoveReport['tables']>, alreadyComplete: boolean): string {
  const lines = Object.entries(tables).map(
    ([name, { rows, sha256 }]) => `  ${name.padEnd(11)}${counted(rows, 'row', 'rows')}, SHA-256 ${sha256}\n`,
  );
  const done = alreadyComplete
    ? 'The move is already complete, nothing was copied; both databases hold the same:'
    : 'Moved; both databases hold the same:';
  return `${done}\n${lines.join('')}Start the service with DATABASE_URL set to the target. The source was not changed.\n`;
}
