import type { DeliveryLog } from '../../inbox/delivery-log.ts';
import type { History, HistoryReading } from '../../observability/history/history.ts';
import type { LogTail } from '../../observability/log/log-tail.ts';

/** What a stream of the console can be about. */
export const TOPICS = ['history', 'deliveries', 'log'] as const;

export type Topic = (typeof TOPICS)[number];

/** Sends an event to one reader; `data` is on one line. With an id a reader that connects again says how far it was. */
export type SendEvent = (event: string, data: string, id: string) => void;

/** Where events come from; what is absent has none. */
export interface LiveSources {
  readonly history?: History | undefined;
  readonly deliveries?: Pick<DeliveryLog, 'list'> | undefined;
  readonly logTail?: LogTail | undefined;
}

/** How far a reader is: the time of its last sample, and the number of its last log entry. */
interface Position {
  sample: number;
  entry: number;
}

/** Log entries and new deliveries are looked for so often, in milliseconds. */
const TICK = 1_000;
/** Deliveries, which cost a query, less often: every so many ticks. */
const QUERY_TICKS = 2;
/** Entries of one event. */
const MAX_ENTRIES = 200;

/** Reads what `Last-Event-ID` says; a new reader begins with what is kept. */
export function readPosition(id: string | undefined): Position {
  const [, sample = '0', entry = '0'] = /^(\d{1,15})-(\d{1,15})$/.exec(id ?? '') ?? [];
  return { sample: Number(sample), entry: Number(entry) };
}

/** Sends the events of some topics to one reader, from a position on. */
export function sendLive(
  sendEvent: SendEvent,
  topics: readonly Topic[],
  position: Position,
  { history, deliveries, logTail }: LiveSources,
): Disposable {
  const ending = new DisposableStack();
  const send = (event: string, data: string) =>
    sendEvent(event, data, `${position.sample}-${position.entry}`);

  function sendSamples(source: History): void {
    const reading = source.read('15m', position.sample);
    const last = reading.times.at(-1);
    if (last === undefined) return;
    position.sample = last;
    send('samples', samplesJson(reading));
  }

  function sendEntries(tail: LogTail): void {
    // Another process has another log: its numbers say nothing here.
    if (position.entry > tail.latest) position.entry = 0;
    if (position.entry === tail.latest) return;
    const entries = tail.after(position.entry);
    const sent = entries.slice(-MAX_ENTRIES);
    position.entry = tail.latest;
    const lines = sent.map(({ number, line }) => `{"number":${number},"entry":${line.trimEnd()}}`);
    send('log', `{"skipped":${entries.length - sent.length},"lines":[${lines.join(',')}]}`);
  }

  let seen: string | undefined;
  async function sendNewest(log: Pick<DeliveryLog, 'list'>): Promise<void> {
    // The status of those that were there changes too.
    const { items } = await log.list({}, 50);
    const state = JSON.stringify(items.map(({ seq, status, attempts }) => [seq, status, attempts]));
    if (state === seen || ending.disposed) return;
    seen = state;
    send('deliveries', JSON.stringify({ newest: items[0]?.seq ?? 0 }));
  }

  if (history !== undefined && topics.includes('history')) {
    ending.use(history.onTick(() => sendSamples(history)));
    if (position.sample > 0) sendSamples(history);
  }
  if (logTail !== undefined && topics.includes('log')) {
    sendEntries(logTail);
    every(ending, TICK, () => sendEntries(logTail));
  }
  if (deliveries !== undefined && topics.includes('deliveries')) {
    // A database that does not answer is on the page already, as health.
    const look = () => void sendNewest(deliveries).catch(() => {});
    look();
    every(ending, TICK * QUERY_TICKS, look);
  }
  return ending;
}

function every(ending: DisposableStack, ms: number, run: () => void): void {
  const timer = setInterval(run, ms);
  ending.defer(() => clearInterval(timer));
}

function samplesJson({ times, columns }: HistoryReading): string {
  const values = Object.entries(columns).map(([name, column]) => [name, column.values]);
  return JSON.stringify({ times, values: Object.fromEntries(values) });
}
