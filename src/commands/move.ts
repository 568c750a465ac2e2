import { parseDatabaseUrl } from '../database/database-url.ts';
import { type MoveReport, moveDatabase } from '../database/move/move-database.ts';
import { openMoveSource, openMoveTarget } from '../database/move/open-ends.ts';
import { type CommandArguments, readArguments } from './argv/command-arguments.ts';
import { usages } from './help/usages.ts';
import { INTERRUPTED, interruption } from './terminal/interruption.ts';
import { counted, endWithReader, note, print, printJson } from './terminal/output.ts';
import { type Progress, showProgress } from './terminal/progress.ts';

/**
 * `portico move`. Resolves to the exit code: 0 when everything is in the target and was compared, 130 when
 * interrupted. Rejects with UsageError, ConfigError, DatabaseOpenError or MoveError.
 */
export async function moveCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.move, argv);
  const [from, to] = await databases(args);
  endWithReader();
  using signal = interruption();
  const report = await moveShown(from, to, args.has('--restart'), signal);
  const { resumed, alreadyComplete, tables } = report;
  if (args.has('--json')) {
    const complete = tables !== undefined;
    await printJson({ complete, resumed, alreadyComplete, tables: tables ?? null });
  } else if (tables === undefined) {
    note(
      'Interrupted. Run it again with the same arguments to go on; until then no service starts on the target.',
    );
  } else await print(describe(tables, alreadyComplete));
  return tables === undefined ? INTERRUPTED : 0;
}

/** The URLs of source and target. Rejects with UsageError or ConfigError; no message shows one. */
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

/** Moves, with a line of progress for each step. */
async function moveShown(
  from: string,
  to: string,
  restart: boolean,
  signal: AbortSignal,
): Promise<MoveReport> {
  await using source = await openMoveSource(from);
  await using target = await openMoveTarget(to);
  using shown = new DisposableStack();
  const lines = new Map<string, Progress>();
  return await moveDatabase(source, target, {
    signal,
    restart,
    onProgress(step, done, total) {
      const doing = step === 'copy' ? 'Moving rows:' : 'Comparing rows:';
      const line = lines.get(step) ?? shown.use(showProgress(doing, total));
      lines.set(step, line);
      line.update(done);
    },
  });
}

function describe(tables: NonNullable<MoveReport['tables']>, alreadyComplete: boolean): string {
  const lines = Object.entries(tables).map(
    ([name, { rows, sha256 }]) => `  ${name.padEnd(11)}${counted(rows, 'row', 'rows')}, SHA-256 ${sha256}\n`,
  );
  const done = alreadyComplete
    ? 'The move is already complete, nothing was copied; both databases hold the same:'
    : 'Moved; both databases hold the same:';
  return `${done}\n${lines.join('')}Start the service with DATABASE_URL set to the target. The source was not changed.\n`;
}
