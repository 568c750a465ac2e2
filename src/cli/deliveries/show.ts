import { printable, printableLines } from '../../core/text.ts';
import { formatSpan } from '../../inbox/delivery.ts';
import { headersOf } from '../../inbox/delivery-body.ts';
import type { AttemptEntry } from '../../inbox/inbox.ts';
import { type DeliveryDetail, detailJson, type JobDetail, jsonText } from '../../inbox/operations.ts';
import { readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { openExisting } from '../database/open.ts';
import { cell, counted, eventText, note, pad, print, printData } from '../terminal.ts';
import { idNamed } from './change.ts';
import { NAMING } from './filter.ts';

/** `portico deliveries show`. Resolves to the exit code: 0, or 1 when there is no such delivery. */
export const showDelivery: Command = {
  usage: {
    topic: 'deliveries show',
    words: '<id> [options]',
    maxWords: 1,
    about: `Shows one delivery, named by ${NAMING}: its jobs, their attempts and errors, and the body.`,
    options: { '--raw': 'Writes only the body, byte for byte as received.', ...JSON_OPTION },
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(showDelivery.usage, argv, io);
  const [word] = args.words;
  if (word === undefined) throw args.misuse('show needs the id of a delivery');
  if (args.has('--raw') && args.has('--json')) throw args.misuse('--raw and --json exclude each other');
  await using database = await openExisting(await args.configuration(), 'deliveries');
  const id = await idNamed(database.deliveries, word);
  const found = id === undefined ? undefined : await database.deliveries.find(id);
  if (found === undefined) {
    note(
      io,
      `There is no delivery ${printable(word)}; it may have been deleted at the end of its retention.`,
    );
    return 1;
  }
  if (args.has('--raw')) await printData(io, found.body);
  else await print(io, `${args.has('--json') ? jsonOf(found) : describe(found, Date.now()).join('\n')}\n`);
  return 0;
}

function jsonOf(found: DeliveryDetail): string {
  return detailJson(found, { shown: true, maxBodyBytes: Number.MAX_SAFE_INTEGER, mask: (text) => text });
}

function describe(found: DeliveryDetail, now: number): readonly string[] {
  const { id, status, source, receivedAt, size, contentType, dataPointer, jobs } = found;
  const fields: readonly (readonly [string, string])[] = [
    ['Delivery', id],
    ['Status', status],
    ['Event', eventText(found) ?? 'none in the delivery'],
    ['Source', source === '' ? 'none, sent to /webhook' : source],
    ['Received', `${new Date(receivedAt).toISOString()}, ${formatSpan(now - receivedAt)} ago`],
    ['Body', `${counted(size, 'byte', 'bytes')}, ${contentType ?? 'no content type'}`],
    ['Data at', dataPointer === '' ? 'the whole body' : dataPointer],
    ...Object.entries(headersOf(found)).map(
      ([name, value], i) => [i === 0 ? 'Headers' : '', `${name}: ${value}`] as const,
    ),
    ['Jobs', jobs.length === 0 ? 'none: its event had no handler when it arrived' : ''],
  ];
  return [
    ...fields.map(([name, value]) => `${pad(name, 10)}${printable(value)}`.trimEnd()),
    ...jobs.flatMap((job) => describeJob(job, now)),
    '',
    shownBody(found.body),
  ];
}

function describeJob(job: JobDetail, now: number): readonly string[] {
  const { target, status, attempts, crashes, error, history } = job;
  const crashed = crashes === 0 ? '' : `, ${counted(crashes, 'crash', 'crashes')}`;
  const line = `  ${printable(target)}: ${status}, ${counted(attempts, 'attempt', 'attempts')}${crashed}${timeOf(job, now)}`;
  const hasError = history.some((entry) => entry.error === error);
  const last = error === null || hasError ? [] : [`    last error: ${printable(error)}`];
  return [line, ...last, ...describeAttempts(history)];
}

function timeOf({ status, dueAt, plannedAt, finishedAt }: JobDetail, now: number): string {
  if (finishedAt !== null) return `, ended ${new Date(finishedAt).toISOString()}`;
  if (status !== 'pending') return '';
  const words = plannedAt === null ? 'next try' : 'planned';
  return dueAt > now
    ? `, ${words} in ${formatSpan(dueAt - now)} (${new Date(dueAt).toISOString()})`
    : ', next try now';
}

function shownBody(body: Uint8Array): string {
  const text = jsonText(body);
  return text === undefined ? 'The body is not JSON; --raw writes it as received.' : prettyJson(text);
}

/** Maximum length of an answer; --json shows all that is stored, up to a kilobyte. */
const MAX_ANSWER = 200;

const OUTCOMES: Readonly<Record<AttemptEntry['outcome'], string>> = {
  done: 'done',
  retry: 'failed',
  dead: 'failed, dead',
  released: 'released',
  crashed: 'crashed',
};
const OUTCOME_WIDTH = Math.max(...Object.values(OUTCOMES).map(({ length }) => length));

/** The lines of a job's history, the oldest attempt first. */
function describeAttempts(history: readonly AttemptEntry[]): readonly string[] {
  const numbers = Math.max(...history.map(({ attempt }) => String(attempt).length));
  const times = Math.max(...history.map((entry) => tookOf(entry).length));
  return history.flatMap((entry) => {
    const { attempt, outcome, startedAt, process, answer, error } = entry;
    const head = [
      pad(String(attempt), numbers, true),
      new Date(startedAt).toISOString(),
      pad(tookOf(entry), times, true),
      pad(OUTCOMES[outcome], OUTCOME_WIDTH),
      printable(process),
    ].join('  ');
    const indent = ' '.repeat(6 + numbers);
    const said = answer === null || answer.body === '' ? [] : [`answer: ${cell(answer.body, MAX_ANSWER)}`];
    const status = answer === null ? [] : [`status ${answer.status}`];
    const failed = error === null ? [] : [printable(error)];
    const more = [...(failed.length > 0 ? failed : status), ...said];
    return [`    ${head}`, ...more.map((line) => indent + line)];
  });
}

function tookOf({ duration }: AttemptEntry): string {
  return duration === null ? '' : `${duration.toLocaleString('en-US')} ms`;
}

/** TC39's "JSON.parse source text access", for which TypeScript has no types. */
interface SourceJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as SourceJson;

/** Indents JSON text; every number keeps all its digits. */
export function prettyJson(text: string): string {
  const value = json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? json.rawJSON(source) : value,
  );
  return printableLines(JSON.stringify(value, null, 2));
}
