import type { Config } from '../../config/load.ts';
import type { DeliveryFilter, DeliveryLog } from '../../inbox/delivery-log.ts';
import type { AuditData } from '../../observability/audit/audit.ts';
import { type CommandArguments, readArguments } from '../argv/command-arguments.ts';
import { filterOf } from '../argv/filter-arguments.ts';
import { auditCommand } from '../audit-command.ts';
import type { CommandUsage } from '../help/command-usage.ts';
import { openExisting } from '../open-existing.ts';
import { confirmed } from '../terminal/confirm.ts';
import { INTERRUPTED, interruption } from '../terminal/interruption.ts';
import { counted, note } from '../terminal/output.ts';
import { showProgress } from '../terminal/progress.ts';
import { batchesOf, namedBatches, type Pages, select } from './batches.ts';
import { type Batches, type BulkAction, type BulkResult, runBulk } from './bulk.ts';
import { reportBulk } from './bulk-report.ts';
import { idNamed } from './named.ts';

/**
 * Runs a command that acts on deliveries, named by its words or matched by its options, by the action for its
 * configuration. Resolves to the exit code.
 */
export async function bulkCommand(
  usage: CommandUsage,
  argv: readonly string[],
  actionOf: (config: Config) => BulkAction,
): Promise<number> {
  const args = readArguments(usage, argv);
  const filter = filterOf(args);
  checkSelection(args, filter);
  const config = await args.configuration();
  const action = actionOf(config);
  await using database = await openExisting(config, 'deliveries');
  using signal = interruption();
  const log = database.deliveries;
  const ids = new Set<string>();
  // All before the first is touched: one that is ambiguous changes nothing.
  for (const word of args.words) ids.add((await idNamed(log, word)) ?? word);
  const named = ids.size > 0;
  const chosen = named
    ? { batches: namedBatches(ids), matched: ids.size }
    : await choose(action, log, filter, args.has('--yes'), signal);
  if (typeof chosen === 'number') return chosen;
  const { batches, matched } = chosen;
  if (!named && matched > 0) note(`${action.verb}ing ${counted(matched, 'delivery', 'deliveries')}.`);
  const result = await runShown(action, log, batches, matched, signal);
  if (result.done > 0) {
    await auditCommand(config.settings, database, `DELIVERIES_${action.done.toUpperCase()}`, {
      ...textsOf(filter),
      count: result.done,
      delivery: named && ids.size === 1 ? [...ids][0] : undefined,
    });
  }
  return reportBulk({ action, matched, result, named, json: args.has('--json') });
}

/** What a filter matches, as audit data. */
function textsOf(filter: DeliveryFilter): AuditData {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]));
}

/** Runs with a line of progress, which is cleared before anything else is printed. */
async function runShown(
  action: BulkAction,
  log: DeliveryLog,
  batches: Batches,
  total: number,
  signal: AbortSignal,
): Promise<BulkResult> {
  using progress = showProgress(`${action.verb}ing`, total);
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
      'say which deliveries: by their ids, or with --dead, --status, --event, --source, --since, --until or --text',
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
): Promise<{ readonly batches: Batches; readonly matched: number } | number> {
  const pages = await select(log, filter, ({ status }) => action.eligible(status));
  const matched = await countMatching(pages(), signal);
  if (matched === undefined) return INTERRUPTED;
  const chosen = { batches: batchesOf(pages()), matched };
  if (matched === 0 || yes) return chosen;
  const question = `${action.verb} ${counted(matched, 'delivery', 'deliveries')}?`;
  if (await confirmed(question, signal)) return chosen;
  note(`Nothing was ${action.done}.`);
  return signal.aborted ? INTERRUPTED : 1;
}

/** Undefined when it was interrupted. */
async function countMatching(pages: Pages, signal: AbortSignal): Promise<number | undefined> {
  using progress = showProgress('Counting', undefined);
  let count = 0;
  for await (const page of pages) {
    if (signal.aborted) return undefined;
    count += page.length;
    progress.update(count);
  }
  return count;
}
