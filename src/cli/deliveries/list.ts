import { paintFor, shellWord } from '../../core/text.ts';
import { formatSpan } from '../../inbox/delivery.ts';
import {
  type DeliveryPage,
  type DeliverySummary,
  deliveryPages,
  FILTER_FIELDS,
  summaryJson,
} from '../../inbox/operations.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { openExisting } from '../database/open.ts';
import { type Column, eventText, note, print, printPainted, renderTable } from '../terminal.ts';
import { FILTER_OPTIONS, listOf, TIME_OPTIONS } from './filter.ts';

/** `portico deliveries list`. Resolves to the exit code. */
export const listDeliveries: Command = {
  usage: {
    topic: 'deliveries list',
    words: '[options]',
    about: 'Lists deliveries, newest first.',
    options: {
      ...FILTER_OPTIONS,
      ...TIME_OPTIONS,
      '--limit <n>': 'Maximum number of deliveries. [default: 20]',
      '--before <n>': 'Number where the next page begins, as printed at the end of a page.',
      ...JSON_OPTION,
    },
    examples: ['portico deliveries list --status dead --since 2h'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(listDeliveries.usage, argv, io);
  const { filter, ...range } = listOf(args);
  await using database = await openExisting(await args.configuration(), 'deliveries');
  const pages = deliveryPages(database.deliveries, filter, range);
  if (args.has('--json')) {
    await printJson(io, pages);
    return 0;
  }
  const { shown, next } = await printTable(io, pages);
  if (shown === 0) note(io, 'No delivery matches.');
  if (next !== undefined) {
    const size = args.has('--limit') ? ` --limit ${range.limit}` : '';
    note(io, `More: portico deliveries list${filterWords(args)}${size} --before ${next}`);
  }
  return 0;
}

/** Maximum number of rows that share column widths. */
const BLOCK = 500;

async function printTable(io: CommandIo, pages: AsyncIterable<DeliveryPage>) {
  const { stdout, env } = io;
  const columns = columnsAt(Date.now());
  let shown = 0;
  let block: DeliverySummary[] = [];
  let next: number | undefined;
  const printBlock = async () => {
    if (block.length === 0) return;
    const lines = renderTable(columns, block, stdout.isTTY ? stdout.columns : undefined);
    const [title = '', ...rows] = lines;
    await printPainted(
      io,
      `${[...(shown === 0 ? [paintFor(stdout, env)('bold', title)] : []), ...rows].join('\n')}\n`,
    );
    shown += block.length;
    block = [];
  };
  for await (const page of pages) {
    block.push(...page.items);
    next = page.next;
    if (block.length >= BLOCK) await printBlock();
  }
  await printBlock();
  return { shown, next };
}

/** Writes one JSON document, page by page. */
async function printJson(io: CommandIo, pages: AsyncIterable<DeliveryPage>): Promise<void> {
  let next: number | undefined;
  let separator = '{"items":[\n';
  let end = '{"items":[';
  for await (const page of pages) {
    for (const item of page.items) {
      await print(io, separator + JSON.stringify(summaryJson(item)));
      separator = ',\n';
      end = '\n';
    }
    next = page.next;
  }
  await print(io, `${end}],"next":${next ?? null}}\n`);
}

function columnsAt(now: number): readonly Column<DeliverySummary>[] {
  return [
    { title: 'ID', text: ({ id }) => id },
    { title: 'STATUS', text: ({ status, plannedAt }) => status + untilTime(plannedAt, now) },
    { title: 'AGE', text: ({ receivedAt }) => formatSpan(now - receivedAt), right: true },
    { title: 'EVENT', text: (summary) => eventText(summary) ?? '-', least: 8 },
    { title: 'SOURCE', text: ({ source }) => source || '-', least: 8, dispensable: 1 },
    { title: 'TRIES', text: ({ attempts }) => String(attempts), right: true, dispensable: 2 },
    { title: 'BYTES', text: ({ size }) => String(size), right: true, dispensable: 3 },
  ];
}

/** The time until which a delivery waits, to the minute. */
function untilTime(plannedAt: number | null, now: number): string {
  if (plannedAt === null || plannedAt <= now) return '';
  return ` until ${new Date(plannedAt).toISOString().slice(0, 16)}Z`;
}

/** The filter of a command as shell words, each preceded by a space. */
function filterWords(args: CommandArguments): string {
  const words = FILTER_FIELDS.flatMap((field) => {
    const value = args.value(`--${field}`);
    return value === undefined ? [] : [` --${field} ${shellWord(value)}`];
  });
  return words.join('');
}
