import { setTimeout as sleep } from 'node:timers/promises';
import { EventStream, eventReply, HttpProblem } from '@portico/transport';
import { refuseFromOtherSite } from '../../access/cors.ts';
import type { DeliveryLog } from '../../inbox/operations.ts';
import type { History } from '../../telemetry/history.ts';
import type { LogTail } from '../../telemetry/loggers.ts';
import type { Operations } from '../operations.ts';

const TOPICS = ['history', 'deliveries', 'log'] as const;

type Topic = (typeof TOPICS)[number];

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
const MAX_ENTRIES = 200;

/** Parses `Last-Event-ID`; a new client begins with the entries that are kept. */
function readPosition(id: string | undefined): Position {
  const [, sample = '0', entry = '0'] = /^(\d{1,15})-(\d{1,15})$/.exec(id ?? '') ?? [];
  return { sample: Number(sample), entry: Number(entry) };
}

/**
 * The events of some topics for one client, from a position on, until it has left. `data` is on one line, and
 * the id tells a client that reconnects where it was.
 */
async function* liveEvents(
  topics: readonly Topic[],
  position: Position,
  { history, deliveries, logTail }: LiveSources,
  closed: AbortSignal,
): AsyncGenerator<string> {
  const event = (name: string, data: string) =>
    `event: ${name}\nid: ${position.sample}-${position.entry}\ndata: ${data}\n\n`;

  function samples(source: History): string {
    const reading = source.read('15m', position.sample);
    const last = reading.times.at(-1);
    if (last === undefined) return '';
    position.sample = last;
    return event('samples', samplesJson(reading));
  }

  function entries(tail: LogTail): string {
    // Numbers of another process's log mean nothing here.
    if (position.entry > tail.latest) position.entry = 0;
    if (position.entry === tail.latest) return '';
    const missed = tail.after(position.entry);
    const sent = missed.slice(-MAX_ENTRIES);
    position.entry = tail.latest;
    const lines = sent.map(({ number, line }) => `{"number":${number},"entry":${line.trimEnd()}}`);
    return event('log', `{"skipped":${missed.length - sent.length},"lines":[${lines.join(',')}]}`);
  }

  let seen: string | undefined;
  async function newest(log: Pick<DeliveryLog, 'list'>): Promise<string> {
    // Reads the newest 50, because the status of known deliveries changes too.
    const { items } = await log.list({}, 50);
    const state = JSON.stringify(items.map(({ seq, status, attempts }) => [seq, status, attempts]));
    if (state === seen) return '';
    seen = state;
    return event('deliveries', JSON.stringify({ newest: items[0]?.seq ?? 0 }));
  }

  for (let tick = 0; !closed.aborted; tick++) {
    // A new page has just read the samples so far.
    if (history !== undefined && topics.includes('history') && (tick > 0 || position.sample > 0)) {
      yield samples(history);
    }
    if (logTail !== undefined && topics.includes('log')) yield entries(logTail);
    if (deliveries !== undefined && topics.includes('deliveries') && tick % QUERY_TICKS === 0) {
      // The page shows a database that does not answer as unhealthy already.
      yield await newest(deliveries).catch(() => '');
    }
    // Rejects once the client has left.
    await sleep(TICK, undefined, { signal: closed }).catch(() => {});
  }
}

function samplesJson({ times, columns }: ReturnType<History['read']>): string {
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

/** The console's event stream: `/live?topics=history,log`. */
export function liveOperations(sources: LiveSources): Operations {
  let open = 0;
  return {
    fast: false,
    head: () => eventReply('', HEADERS),
    get(ctx) {
      refuseFromOtherSite('Event streams', ctx);
      const { topics: given, after } = ctx.query;
      const wanted = typeof given === 'string' ? given.split(',') : [];
      const topics = TOPICS.filter((topic) => wanted.includes(topic));
      if (topics.length === 0 || topics.length !== wanted.length) throw WRONG_TOPIC;
      if (open >= MAX_STREAMS) throw TOO_MANY;
      open++;
      const closed = new AbortController();
      ctx.onClose(() => {
        open--;
        closed.abort();
      });
      // A browser sends the header when it reconnects; a page that opens a new stream sends its last position
      // as `after`.
      const last = ctx.headers['last-event-id'] ?? after;
      const position = readPosition(typeof last === 'string' ? last : undefined);
      const stream = new EventStream(liveEvents(topics, position, sources, closed.signal), {
        begin: 'retry: 2000\n\n',
        text: (events) => events,
        maxBehind: MAX_WAITING,
      });
      return eventReply(stream, HEADERS);
    },
  };
}
