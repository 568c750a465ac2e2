import type { Config } from '../../config/load.ts';
import type { DeliveryFilter, DeliveryLog } from '../../inbox/delivery-log.ts';
import { type CommandArguments, readArguments } from '../argv/command-arguments.ts';
import { filterOf } from '../argv/filter-arguments.ts';
import { readConfiguration } from '../argv/read-configuration.ts';
import type { CommandUsage } from '../help/command-usage.ts';
import { confirmed } from '../terminal/confirm.ts';
import { INTERRUPTED, interruption } from '../terminal/interruption.ts';
import { counted, note } from '../terminal/output.ts';
import { showProgress } from '../terminal/progress.ts';
import { namedBatches, type Selection, select } from './batches.ts';
import { type Batches, type BulkResult, runBulk } from './bulk.ts';
import type { BulkAction } from './bulk-action.ts';
import { reportBulk } from './bulk-report.ts';
import { openExisting } from './open-deliveries.ts';

/** Creates the action from the configuration. */
export type ActionOf = (config: Config) => BulkAction;

/** Runs a command that acts on deliveries, named by its words or matched by its options. Resolves to the exit code. */
export async function bulkCommand(
  usage: CommandUsage,
  argv: readonly string[],
  actionOf: ActionOf,
): Promise<number> {
  const args = readArguments(usage, argv);
  const filter = filterOf(args);
  checkSelection(args, filter);
  const config = await readConfiguration(args);
  const action = actionOf(config);
  await using database = await openExisting(config);
  using interrupted = interruption();
  const { signal } = interrupted;
  const log = database.deliveries;
  const ids = new Set(args.words);
  if (ids.size > 0) {
    const result = await runShown(action, log, namedBatches(ids), ids.size, signal);
    return reportBulk({ action, matched: ids.size, result, named: true, json: args.has('--json') });
  }
  const chosen = await choose(action, log, filter, args.has('--yes'), signal);
  if (typeof chosen === 'number') return chosen;
  const { selection, matched } = chosen;
  if (matched > 0) note(`${action.doing} ${counted(matched, 'delivery', 'deliveries')}.`);
  const result = await runShown(action, log, selection.batches(), matched, signal);
  return reportBulk({ action, matched, result, named: false, json: args.has('--json') });
}

/** Runs with a line of progress, which is cleared before anything else is printed. */
async function runShown(
  action: BulkAction,
  log: DeliveryLog,
  batches: Batches,
  total: number,
  signal: AbortSignal,
): Promise<BulkResult> {
  using progress = showProgress(action.doing, total);
  return await runBulk(action, log, batches, signal, progress);
}

/** Deliveries are named or filtered, and never all of them by default. */
function checkSelection(args: CommandArguments, filter: DeliveryFilter): void {
  const named = args.words.length > 0;
  const filtered = Object.keys(filter).length > 0;
  if (named && filtered) {
    throw args.misuse('name ids, or say what the deliveries have in common; not both');
  }
  if (!named && !filtered) {
    throw args.misuse(
      'say which deliveries: by their ids, or with --dead, --status, --event, --source, --since or --until',
    );
  }
}

/** The deliveries that match, counted and confirmed; the exit code when that was interrupted or declined. */
async function choose(
  action: BulkAction,
  log: DeliveryLog,
  filter: DeliveryFilter,
  yes: boolean,
  signal: AbortSignal,
): Promise<{ readonly selection: Selection; readonly matched: number } | number> {
  const selection = await select(log, filter, ({ status }) => action.eligible(status));
  const matched = await countMatching(selection, signal);
  if (matched === undefined) return INTERRUPTED;
  if (matched === 0 || yes) return { selection, matched };
  const question = `${action.verb} ${counted(matched, 'delivery', 'deliveries')}?`;
  if (await confirmed(question, signal)) return { selection, matched };
  note(`Nothing was ${action.done}.`);
  return signal.aborted ? INTERRUPTED : 1;
}

async function countMatching(selection: Selection, signal: AbortSignal): Promise<number | undefined> {
  using progress = showProgress('Counting', undefined);
  return await selection.count(signal, progress.update);
}
