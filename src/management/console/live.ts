import { type EventStreams, HttpProblem } from '@portico/transport';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { refuseFromOtherSite } from '../../access/cors.ts';
import type { DeliveryLog } from '../../inbox/operations.ts';
import type { History, HistoryReading } from '../../telemetry/history.ts';
import type { LogTail } from '../../telemetry/loggers.ts';

/** The topics of a console stream. */
const TOPICS = ['history', 'deliveries', 'log'] as const;

type Topic = (typeof TOPICS)[number];

/**
 * Sends an event to one client; `data` is on one line. The id tells a client that reconnects where it was.
 */
type SendEvent = (event: string, data: string, id: string) => void;

/** The sources of events; a missing one sends none. */
interface LiveSources {
  readonly history?: History | undefined;
  readonly deliveries?: Pick<DeliveryLog, 'list'> | undefined;
  readonly logTail?: LogTail | undefined;
}

/** A client's position: the time of its last sample, and the number of its last log entry. */
interface Position {
  sample: number;
  entry: number;
}

/** Interval between two looks for log entries and deliveries, in milliseconds. */
const TICK = 1_000;
/** Ticks between two looks for deliveries, because each costs a query. */
const QUERY_TICKS = 2;
/** Maximum number of entries in one event. */
const MAX_ENTRIES = 200;

/** Parses `Last-Event-ID`; a new client begins with the entries that are kept. */
function readPosition(id: string | undefined): Position {
  const [, sample = '0', entry = '0'] = /^(\d{1,15})-(\d{1,15})$/.exec(id ?? '') ?? [];
  return { sample: Number(sample), entry: Number(entry) };
}

/** Sends the events of some topics to one client, from a position on. */
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
    // Numbers of another process's log mean nothing here.
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
    // Reads the newest 50, because the status of known deliveries changes too.
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
    // The page shows a database that does not answer as unhealthy already.
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
/** Bytes that may wait for a client before its stream is closed; the page reconnects and resumes. */
const MAX_WAITING = 1024 * 1024;
const HEADERS = { 'x-content-type-options': 'nosniff' } as const;

const WRONG_TOPIC = new HttpProblem(400, 'CONSOLE_TOPIC', `topics must name some of ${TOPICS.join(', ')}`);
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
      // A browser sends the header when it reconnects; a page that opens a new stream sends its last position
      // as `after`.
      const last = request.headers['last-event-id'] ?? after;
      const position = readPosition(typeof last === 'string' ? last : undefined);
      stream(streams, reply, (send) => sendLive(send, topics, position, sources));
    },
  );
}

/** Opens a stream; `start` returns the subscription to dispose of at its end. */
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
