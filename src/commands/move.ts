import { parseDatabaseUrl } from '../database/database-url.ts';
import { type MoveReport, moveDatabase } from '../database/move/move-database.ts';
import { openMoveSource, openMoveTarget } from '../database/move/open-ends.ts';
import { type CommandArguments, readArguments } from './argv/command-arguments.ts';
import { readConfiguration } from './deliveries/open-deliveries.ts';
import { INTERRUPTED, interruption } from './interruption.ts';
import { moveUsage } from './move-usage.ts';
import { counted, endWithReader, note, print } from './output.ts';
import { type Progress, showProgress } from './progress.ts';
import { UsageError } from './usage-error.ts';

/**
 * `portico move`. Resolves to the exit code: 0 when everything is in the target and was compared, 130 when it was
 * interrupted. Fails with UsageError, ConfigError, DatabaseOpenError or MoveError.
 */
export async function moveCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(moveUsage, argv);
  const [from, to] = await databases(args);
  endWithReader();
  using interrupted = interruption();
  const { signal } = interrupted;
  const report = await moveShown(from, to, args.has('--restart'), signal);
  const { resumed, tables } = report;
  if (args.has('--json')) {
    await print(`${JSON.stringify({ complete: tables !== undefined, resumed, tables: tables ?? null })}\n`);
  } else await print(describe(report));
  return tables === undefined ? INTERRUPTED : 0;
}

/** The URLs of both. Fails with UsageError or ConfigError; no message shows one. */
async function databases(args: CommandArguments): Promise<readonly [string, string]> {
  const to = args.value('--to');
  if (to === undefined) throw new UsageError(['move needs --to, the database to move to'], moveUsage.topic);
  const configured = async () => (await readConfiguration(args.config)).settings['database.url'];
  const from = args.value('--from') ?? (await configured());
  for (const [name, url] of [
    ['--from', from],
    ['--to', to],
  ] as const) {
    const place = parseDatabaseUrl(url)?.place ?? '';
    if (place === ':memory:' || !/^./u.test(place)) {
      throw new UsageError(
        [`${name} is no database to move; expected sqlite:<file> or postgres://...`],
        moveUsage.topic,
      );
    }
  }
  return [from, to];
}

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

function describe({ tables }: MoveReport): string {
  if (tables === undefined) {
    note(
      'Interrupted. Run it again with the same arguments to go on; no service starts on the target until then.',
    );
    return '';
  }
  const lines = Object.entries(tables).map(
    ([name, { rows, sha256 }]) => `  ${name.padEnd(11)}${counted(rows, 'row', 'rows')}, SHA-256 ${sha256}\n`,
  );
  return `Moved; both databases hold the same:\n${lines.join('')}Start the service with DATABASE_URL set to the new one. The old one is as it was.\n`;
}
