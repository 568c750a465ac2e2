import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailableError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import { isCalled } from '../../inbox/delivery.ts';
import {
  type DeliveryFilter,
  type DeliveryLog,
  type DeliverySummary,
  deliveryPages,
  summaryJson,
} from '../../inbox/operations.ts';
import { readArguments } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { openExisting } from '../database/open.ts';
import { eventText, interruption, note, pad, print } from '../terminal.ts';
import { FILTER_OPTIONS, filterOf } from './filter.ts';

/** Interval between two polls, in milliseconds. */
const INTERVAL = 500;
/** Number of newest deliveries of a status that each poll reads. */
const WATCHED = 5_000;

/** `portico deliveries tail`. Resolves to exit code 0 on Ctrl+C. */
export const tailDeliveries: Command = {
  usage: {
    topic: 'deliveries tail',
    words: '[options]',
    about:
      'Follows new deliveries until Ctrl+C. With --status it shows each delivery when it gets that status.',
    options: { ...FILTER_OPTIONS, '--json': 'Prints one JSON document per line instead of text.' },
    examples: ['portico deliveries tail --status dead'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(tailDeliveries.usage, argv, io);
  const filter = filterOf(args);
  await using database = await openExisting(await args.configuration(), 'deliveries');
  using signal = interruption(io);
  const log = database.deliveries;
  const start = await newestArrival(log);
  const follow =
    filter.status === undefined ? followArrivals(log, filter, start) : followStatus(log, filter, start);
  const line = args.has('--json') ? jsonLine : textLine;
  note(io, 'Waiting for deliveries; Ctrl+C ends it.');
  let problem: string | undefined;
  while (!signal.aborted) {
    try {
      for await (const items of follow()) {
        for (const item of items) await print(io, line(item));
        if (signal.aborted) break;
      }
      problem = undefined;
    } catch (error) {
      // The next poll resumes where this one failed.
      if (!(error instanceof StoreUnavailableError)) throw error;
      if (error.message !== problem) note(io, error.message);
      problem = error.message;
    }
    // Rejects when the signal is aborted.
    await delay(INTERVAL, undefined, { signal }).catch(() => {});
  }
  return 0;
}

/** The `seq` of the newest delivery, once all below it are stored. */
async function newestArrival(log: DeliveryLog): Promise<number> {
  const newest = (await log.list({}, 1)).items[0]?.seq ?? 0;
  // A list in the order of arrival waits for deliveries that are still being stored.
  await log.list({}, 1, { after: newest - 1 });
  return newest;
}

/** Yields the deliveries that are new since the last call. */
type Follow = () => AsyncIterable<readonly DeliverySummary[]>;

/** Yields every delivery once, as it arrives; filters here, so that the cursor passes all of them. */
function followArrivals(log: DeliveryLog, { event, source }: DeliveryFilter, start: number): Follow {
  let after = start;
  return async function* () {
    for await (const { items } of deliveryPages(log, {}, { cursor: { after } })) {
      after = items.at(-1)?.seq ?? after;
      yield items.filter(
        (item) =>
          (event === undefined || isCalled(item, event)) && (source === undefined || item.source === source),
      );
    }
  };
}

/** Yields every delivery that arrived since the start, each time it gets the status. */
function followStatus(log: DeliveryLog, filter: DeliveryFilter, start: number): Follow {
  let shown: ReadonlySet<number> = new Set();
  return async function* () {
    const { items } = await log.list(filter, WATCHED);
    const since = items.filter(({ seq }) => seq > start);
    const fresh = since.filter(({ seq }) => !shown.has(seq));
    shown = new Set(since.map(({ seq }) => seq));
    yield fresh.reverse();
  };
}

function jsonLine(item: DeliverySummary): string {
  return `${JSON.stringify(summaryJson(item))}\n`;
}

function textLine(summary: DeliverySummary): string {
  const { id, status, source, receivedAt } = summary;
  const about = `${eventText(summary) ?? '-'}${source === '' ? '' : ` from ${source}`}`;
  return `${new Date(receivedAt).toISOString()}  ${pad(status, 10)}  ${id}  ${printable(about)}\n`;
}
