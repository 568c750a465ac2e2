import { type EventStreams, HttpProblem } from '@portico/transport';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { refuseFromOtherSite } from '../../http/cross-site.ts';
import type { DeliveryLog } from '../../inbox/operations.ts';
import type { History, HistoryReading } from '../../telemetry/history.ts';
import type { LogTail } from '../../telemetry/loggers.ts';

/** What a stream of the console can be about. */
const TOPICS = ['history', 'deliveries', 'log'] as const;

type Topic = (typeof TOPICS)[number];

/** Sends an event to one reader; `data` is on one line. With an id a reader that connects again says how far it was. */
type SendEvent = (event: string, data: string, id: string) => void;

/** Where events come from; what is absent has none. */
interface LiveSources {
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
function readPosition(id: string | undefined): Position {
  const [, sample = '0', entry = '0'] = /^(\d{1,15})-(\d{1,15})$/.exec(id ?? '') ?? [];
  return { sample: Number(sample), entry: Number(entry) };
}

/** Sends the events of some topics to one reader, from a position on. */
function sendLive(
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

const MAX_STREAMS = 32;
/** A page that reads nothing is cut at so many bytes; it connects again and goes on where it was. */
const MAX_WAITING = 1024 * 1024;
const HEADERS = { 'x-content-type-options': 'nosniff' } as const;

const WRONG_TOPIC = new HttpProblem(400, 'CONSOLE_TOPIC', `topics has to name some of ${TOPICS.join(', ')}`);
const TOO_MANY = new HttpProblem(503, 'CONSOLE_STREAMS', 'Too many consoles are open', {
  headers: { 'retry-after': '10' },
});

/** Adds the route of the console's event stream: `/live?topics=history,log`. */
export function addLiveRoute(scope: FastifyInstance, streams: EventStreams, sources: LiveSources): void {
  scope.get<{ Querystring: { topics?: unknown; after?: unknown } }>(
    '/live',
    { exposeHeadRoute: false },
    (request, reply) => {
      refuseFromOtherSite('Event streams', request);
      const { topics: given, after } = request.query;
      const wanted = typeof given === 'string' ? given.split(',') : [];
      const topics = TOPICS.filter((topic) => wanted.includes(topic));
      if (topics.length === 0 || topics.length !== wanted.length) throw WRONG_TOPIC;
      // A browser sends the header when it connects again; a page that begins anew knows its place from before.
      const last = request.headers['last-event-id'] ?? after;
      const position = readPosition(typeof last === 'string' ? last : undefined);
      stream(streams, reply, (send) => sendLive(send, topics, position, sources));
    },
  );
}

/** Opens a stream; `start` returns what ends its sources. */
function stream(streams: EventStreams, reply: FastifyReply, start: (send: SendEvent) => Disposable): void {
  if (streams.size >= MAX_STREAMS) throw TOO_MANY;
  let source: Disposable | undefined;
  const opened = streams.open(reply, {
    headers: HEADERS,
    maxBehind: MAX_WAITING,
    onEnd: () => source?.[Symbol.dispose](),
  });
  opened.push('retry: 2000\n\n');
  if (!opened.isOpen) return;
  source = start((event, data, id) => opened.push(`event: ${event}\nid: ${id}\ndata: ${data}\n\n`));
}
