import { setTimeout as delay } from 'node:timers/promises';
import type { AuditData } from '../../access/audit.ts';
import { replayPlanOf } from '../../app/webhook-door.ts';
import { StoreUnavailableError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import {
  ACTIONS,
  type ActionName,
  type Deliveries,
  type DeliveryFilter,
  type DeliveryLog,
  type DeliverySummary,
  deliveryPages,
  REFUSALS,
} from '../../inbox/operations.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import {
  type Command,
  type CommandIo,
  type CommandUsage,
  JSON_OPTION,
  UsageError,
  YES_OPTION,
} from '../command.ts';
import { auditCommand, openExisting } from '../database/open.ts';
import {
  confirmed,
  counted,
  eventText,
  INTERRUPTED,
  interruption,
  note,
  type Progress,
  print,
  printJson,
  showProgress,
} from '../terminal.ts';
import { FILTER_OPTIONS, filterOf, NAMING, TIME_OPTIONS } from './filter.ts';

type Refusal = keyof typeof REFUSALS;

const DEAD = { '--dead': 'All dead deliveries; the same as --status dead.' };

/** As in "Replay 5 deliveries?". */
const VERBS: Readonly<Record<ActionName, string>> = { replay: 'Replay', discard: 'Discard' };

const BULK = { words: '[id...] [options]', maxWords: Number.POSITIVE_INFINITY };

/** `portico deliveries discard`. Resolves to the exit code. */
const discardDeliveries: Command = {
  usage: {
    topic: 'deliveries discard',
    ...BULK,
    about:
      `Discards the open and dead jobs of deliveries, each named by ${NAMING}, or matched by options. The deliveries stay in the ` +
      'list and can be replayed.',
    options: { ...DEAD, ...FILTER_OPTIONS, ...TIME_OPTIONS, ...YES_OPTION, ...JSON_OPTION },
    examples: ['portico deliveries discard --dead --until 30d'],
  },
  run: (argv, io) => changeDeliveries('discard', discardDeliveries.usage, argv, io),
};

/** `portico deliveries replay`. Resolves to the exit code. */
const replayDeliveries: Command = {
  usage: {
    topic: 'deliveries replay',
    ...BULK,
    about:
      `Replays deliveries, each named by ${NAMING}, or matched by options. Replaying a dead delivery retries only its failed jobs, ` +
      'replaying any other runs all its jobs. Open deliveries are skipped. A running service starts the jobs ' +
      'within a second, a stopped one when it starts.',
    options: { ...DEAD, ...FILTER_OPTIONS, ...TIME_OPTIONS, ...YES_OPTION, ...JSON_OPTION },
    examples: ['portico deliveries replay --dead', 'portico deliveries replay --event invoice --since 2h'],
  },
  run: (argv, io) => changeDeliveries('replay', replayDeliveries.usage, argv, io),
};

/** The commands that change deliveries. */
export const changeCommands = { replay: replayDeliveries, discard: discardDeliveries };

/** Runs an action on deliveries, named as arguments or matched by options. Resolves to the exit code. */
async function changeDeliveries(
  action: ActionName,
  usage: CommandUsage,
  argv: readonly string[],
  io: CommandIo,
): Promise<number> {
  const args = readArguments(usage, argv, io);
  const filter = filterOf(args);
  checkSelection(args, filter);
  const config = await args.configuration();
  const plan = action === 'replay' ? replayPlanOf(config) : () => [];
  await using database = await openExisting(config, 'deliveries');
  using signal = interruption(io);
  const log = database.deliveries;
  const ids = new Set<string>();
  // Resolves all names before the first change, so that an ambiguous one changes nothing.
  for (const word of args.words) ids.add((await idNamed(log, word)) ?? word);
  const named = ids.size > 0;
  const chosen = named
    ? { batches: namedBatches(ids), matched: ids.size }
    : await choose(action, log, filter, args.has('--yes'), io, signal);
  if (typeof chosen === 'number') return chosen;
  const { batches, matched } = chosen;
  if (!named && matched > 0) note(io, `${VERBS[action]}ing ${counted(matched, 'delivery', 'deliveries')}.`);
  const result = await runShown(action, { log, plan }, batches, matched, io, signal);
  if (result.done > 0) {
    await auditCommand(config.settings, database, `DELIVERIES_${ACTIONS[action].done.toUpperCase()}`, {
      ...textsOf(filter),
      count: result.done,
      delivery: named && ids.size === 1 ? [...ids][0] : undefined,
    });
  }
  return reportBulk(io, { action, matched, result, named, json: args.has('--json') });
}

/** A filter as audit data. */
function textsOf(filter: DeliveryFilter): AuditData {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]));
}

/** Runs with a line of progress, and clears the line before anything else is printed. */
async function runShown(
  action: ActionName,
  deliveries: Deliveries,
  batches: Batches,
  total: number,
  io: CommandIo,
  signal: AbortSignal,
): Promise<BulkResult> {
  using progress = showProgress(io, `${VERBS[action]}ing`, total);
  return await runBulk(action, deliveries, batches, signal, progress);
}

/** A selection needs ids or a filter, not both: a command never changes all deliveries by default. */
function checkSelection(args: CommandArguments, filter: DeliveryFilter): void {
  const named = args.words.length > 0;
  const filtered = Object.keys(filter).length > 0;
  if (named && filtered) {
    throw args.misuse('give either ids or a filter, not both');
  }
  if (!named && !filtered) {
    throw args.misuse(
      'select deliveries by id, or with --dead, --status, --event, --source, --target, --since, --until or --text',
    );
  }
}

/** Counts the matches and asks for confirmation; returns the exit code if the user declines. */
async function choose(
  action: ActionName,
  log: DeliveryLog,
  filter: DeliveryFilter,
  yes: boolean,
  io: CommandIo,
  signal: AbortSignal,
): Promise<{ readonly batches: Batches; readonly matched: number } | number> {
  const pages = await select(log, filter, ({ status }) => ACTIONS[action].isEligible(status));
  const matched = await countMatching(pages(), io, signal);
  if (matched === undefined) return INTERRUPTED;
  const chosen = { batches: batchesOf(pages()), matched };
  if (matched === 0 || yes) return chosen;
  const question = `${VERBS[action]} ${counted(matched, 'delivery', 'deliveries')}?`;
  if (await confirmed(io, question, signal)) return chosen;
  note(io, `Nothing was ${ACTIONS[action].done}.`);
  return signal.aborted ? INTERRUPTED : 1;
}

/** Undefined when interrupted. */
async function countMatching(pages: Pages, io: CommandIo, signal: AbortSignal): Promise<number | undefined> {
  using progress = showProgress(io, 'Counting', undefined);
  let count = 0;
  for await (const page of pages) {
    if (signal.aborted) return undefined;
    count += page.length;
    progress.update(count);
  }
  return count;
}

/** Lists of ids; on SQLite each list is one transaction. */
type Batches = Iterable<readonly string[]> | AsyncIterable<readonly string[]>;

interface BulkResult {
  readonly done: number;
  readonly refused: ReadonlyMap<Refusal, number>;
  /** The first 10,000 of these. */
  readonly examples: readonly { readonly id: string; readonly reason: Refusal }[];
  /** Why the operation ended early; undefined if it is complete. */
  readonly stopped: 'interrupted' | StoreUnavailableError | undefined;
}

const MAX_EXAMPLES = 10_000;

/** Acts on deliveries batch by batch, until all are done, the database fails or the signal is aborted. */
async function runBulk(
  action: ActionName,
  deliveries: Deliveries,
  batches: Batches,
  signal: AbortSignal,
  progress: Progress,
): Promise<BulkResult> {
  let done = 0;
  let seen = 0;
  const refused = new Map<Refusal, number>();
  const examples: BulkResult['examples'][number][] = [];
  let stopped: BulkResult['stopped'];

  const run = async (batch: readonly string[]) => {
    const began = performance.now();
    const results: PromiseSettledResult<'replayed' | 'discarded' | Refusal>[] = [];
    while (results.length < batch.length) {
      const ids = batch.slice(results.length, results.length + deliveries.log.maxChanges);
      results.push(
        ...(await Promise.allSettled(ids.map((id) => ACTIONS[action].act(deliveries, id, Date.now())))),
      );
    }
    for (const [i, result] of results.entries()) {
      if (result.status === 'rejected') {
        if (!(result.reason instanceof StoreUnavailableError)) throw result.reason;
        stopped = result.reason;
      } else if (result.value === 'replayed' || result.value === 'discarded') done++;
      else {
        refused.set(result.value, (refused.get(result.value) ?? 0) + 1);
        if (examples.length < MAX_EXAMPLES) examples.push({ id: batch[i] ?? '', reason: result.value });
      }
    }
    seen += batch.length;
    progress.update(seen);
    // Yields the database to other writers for as long as this batch took.
    await delay(performance.now() - began, undefined, { signal }).catch(() => {});
  };

  for await (const batch of batches) {
    if (signal.aborted) stopped = 'interrupted';
    if (stopped !== undefined) break;
    await run(batch);
  }
  return { done, refused, examples, stopped };
}

/** Maximum number of deliveries in one batch, which is one transaction. */
const MAX_DELIVERIES = 100;
/** Maximum bytes of a batch, whose bodies are in memory; a larger delivery is its own batch. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Number of ids in a batch of deliveries of unknown size. */
const NAMED = 10;

/** Deliveries, page by page, oldest first. */
type Pages = AsyncIterable<readonly DeliverySummary[]>;

/** Selects the matches up to the newest one now; each call of the result reads them again. */
async function select(
  log: DeliveryLog,
  filter: DeliveryFilter,
  eligible: (delivery: DeliverySummary) => boolean,
): Promise<() => Pages> {
  const newest = (await log.list({}, 1)).items[0]?.seq ?? 0;
  return async function* () {
    for await (const { items } of deliveryPages(log, filter, { cursor: { after: 0 } })) {
      yield items.filter((item) => item.seq <= newest && eligible(item));
      if ((items.at(-1)?.seq ?? 0) > newest) return;
    }
  };
}

/** Batches of the ids of deliveries. */
async function* batchesOf(pages: Pages): AsyncIterable<readonly string[]> {
  for await (const page of pages) yield* split(page);
}

function* split(page: readonly DeliverySummary[]): Iterable<readonly string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const { id, size } of page) {
    if (batch.length === MAX_DELIVERIES || (batch.length > 0 && bytes + size > MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(id);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Batches of ids that the user named. */
function* namedBatches(ids: ReadonlySet<string>): Iterable<readonly string[]> {
  const all = [...ids];
  for (let i = 0; i < all.length; i += NAMED) yield all.slice(i, i + NAMED);
}

/** The outcome of a bulk operation, and how to print it. */
interface BulkReport {
  readonly action: ActionName;
  readonly matched: number;
  readonly result: BulkResult;
  /** Whether the user named them by id: then an unchanged delivery is a failure. */
  readonly named: boolean;
  readonly json: boolean;
}

/** Prints the result of a bulk operation; resolves to the exit code. */
async function reportBulk(io: CommandIo, report: BulkReport): Promise<number> {
  const { result, matched, named, json } = report;
  const { done, stopped } = result;
  await (json ? printJson(io, summaryOf(report)) : print(io, `${describe(report).join('\n')}\n`));
  if (stopped === 'interrupted') return INTERRUPTED;
  if (stopped !== undefined) {
    note(io, `portico: ${stopped.message}`);
    return 1;
  }
  return done === 0 || (named && done < matched) ? 1 : 0;
}

function summaryOf({ action, matched, result }: BulkReport) {
  const { done, refused, examples, stopped } = result;
  return {
    matched,
    [ACTIONS[action].done]: done,
    refused: Object.fromEntries(refused),
    examples,
    complete: stopped === undefined,
  };
}

function describe({ action, matched, result, named }: BulkReport): readonly string[] {
  const { done, refused, examples, stopped } = result;
  if (matched === 0) return [`Nothing matches; nothing was ${ACTIONS[action].done}.`];
  const lines = [`${counted(done, 'delivery', 'deliveries')} ${ACTIONS[action].done}.`];
  for (const [reason, count] of named ? [] : refused) {
    lines.push(`${counted(count, 'delivery was', 'deliveries were')} left. ${REFUSALS[reason]}.`);
  }
  if (named) lines.push(...examples.map(({ id, reason }) => `${printable(id)}: ${REFUSALS[reason]}.`));
  if (stopped !== undefined) {
    const seen = done + [...refused.values()].reduce((sum, count) => sum + count, 0);
    lines.push(
      `Stopped after ${seen.toLocaleString('en-US')} of ${matched.toLocaleString('en-US')}; the others are unchanged. Run it again to continue.`,
    );
  }
  return lines;
}

/** Maximum number of deliveries listed in the error for an ambiguous name. */
const MAX_LISTED = 10;

/**
 * The id of the delivery that a word names: its id, the beginning of it, or the sender's id. Undefined if
 * there is none. Rejects with UsageError, which lists the matches, if there are several.
 */
export async function idNamed(log: DeliveryLog, word: string): Promise<string | undefined> {
  const ids = await log.resolve(word, MAX_LISTED + 1);
  if (ids.length < 2) return ids[0];
  const listed = await Promise.all(ids.slice(0, MAX_LISTED).map((id) => log.find(id)));
  const lines = listed.flatMap((found) =>
    found === undefined
      ? []
      : [
          `  ${found.id}  ${new Date(found.receivedAt).toISOString()}  ${printable(eventText(found) ?? '')}`.trimEnd(),
        ],
  );
  const more = ids.length > MAX_LISTED ? ['  and more'] : [];
  throw new UsageError([`"${printable(word)}" names more than one delivery:`, ...lines, ...more]);
}
