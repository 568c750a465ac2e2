import type { Config } from '../../config/load.ts';
import type { DeliveryFilter, DeliveryLog } from '../../inbox/delivery-log.ts';
import { type CommandArguments, readArguments } from '../argv/command-arguments.ts';
import type { CommandUsage } from '../command-usage.ts';
import { INTERRUPTED, interruption } from '../interruption.ts';
import { counted, note } from '../output.ts';
import { showProgress } from '../progress.ts';
import { UsageError } from '../usage-error.ts';
import { namedBatches, type Selection, select } from './batches.ts';
import { type Batches, type BulkResult, runBulk } from './bulk.ts';
import type { BulkAction } from './bulk-action.ts';
import { reportBulk } from './bulk-report.ts';
import { confirmed } from './confirm.ts';
import { filterOf } from './filter-arguments.ts';
import { openExisting, readConfiguration } from './open-deliveries.ts';

/** Makes the action once the configuration is known. */
export type ActionOf = (config: Config) => BulkAction | Promise<BulkAction>;

/** A command that does something with the deliveries that its words name, or that its options mean. */
export async function bulkCommand(
  usage: CommandUsage,
  argv: readonly string[],
  actionOf: ActionOf,
): Promise<number> {
  const args = readArguments(usage, argv);
  const filter = filterOf(args, usage);
  checkWhich(args, filter, usage);
  const config = await readConfiguration(args.config);
  const action = await actionOf(config);
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

/** The line of progress is gone again before anything else is said. */
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

function checkWhich({ words }: CommandArguments, filter: DeliveryFilter, { topic }: CommandUsage): void {
  const filtered = Object.keys(filter).length > 0;
  if (words.length > 0 && filtered) {
    throw new UsageError(['name ids, or say what the deliveries have in common; not both'], topic);
  }
  if (words.length === 0 && !filtered) {
    throw new UsageError(
      ['say which deliveries: by their ids, or with --dead, --status, --event, --source, --since or --until'],
      topic,
    );
  }
}

/** What the filter means, counted and confirmed; the exit code when it came to nothing. */
async function choose(
  action: BulkAction,
  log: DeliveryLog,
  filter: DeliveryFilter,
  sure: boolean,
  signal: AbortSignal,
): Promise<{ readonly selection: Selection; readonly matched: number } | number> {
  const selection = await select(log, filter, ({ status }) => action.eligible(status));
  const matched = await countMatching(selection, signal);
  if (matched === undefined) return INTERRUPTED;
  if (matched === 0 || sure) return { selection, matched };
  const question = `${action.verb} ${counted(matched, 'delivery', 'deliveries')}?`;
  if (await confirmed(question, signal)) return { selection, matched };
  note(`Nothing was ${action.done}.`);
  return signal.aborted ? INTERRUPTED : 1;
}

async function countMatching(selection: Selection, signal: AbortSignal): Promise<number | undefined> {
  using progress = showProgress('Counting', undefined);
  return await selection.count(signal, progress.update);
}
