import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Door } from '../../src/config/options/options.ts';
import { Silence, WARM_UP_PATH, warmUp } from './connections.ts';
import { type Setup, startTestService, type TestService } from './service.ts';

/** What a connection brought back, without what differs between any two replies. */
export interface TwinReplies {
  readonly fast: string;
  readonly fastify: string;
}

/** Two services of one configuration, the second without the fast path. */
export interface TransportTwins extends AsyncDisposable {
  readonly fast: TestService;
  readonly fastify: TestService;
  /**
   * Writes the same pieces to one door of both, each behind a first request that is left out of all that follows;
   * resolves to what came until the doors closed the connection or were silent.
   */
  ask(door: Door, pieces: readonly Piece[], options?: AskOptions): Promise<TwinReplies>;
  /** The same, and fails unless the replies are the same. */
  agree(door: Door, pieces: readonly Piece[], options?: AskOptions): Promise<void>;
  /** How many requests Fastify of the first has handled. */
  readonly slowly: number;
}

export type Piece = string | Uint8Array;

export interface AskOptions {
  /** In milliseconds; default 400. */
  readonly silence?: number;
  /** What the client does after its last piece; default nothing. */
  readonly ending?: 'end' | 'reset';
  /** Whether the replies are about their moment, which then is taken out of them; default false. */
  readonly volatile?: boolean;
  /** What each of the two gets in the place of DELIVERY: the ids of deliveries differ. */
  readonly delivery?: TwinReplies | undefined;
}

/** Stands for the id of a delivery in what is asked. */
export const DELIVERY = '{delivery}';

/** Starts both; `env` is what they are configured with. */
export async function startTransportTwins(setup: Setup = {}): Promise<TransportTwins> {
  await using cleanup = new AsyncDisposableStack();
  // Both have the setting: the management door shows which ones there are.
  const start = (fastPath: boolean) =>
    startTestService({ ...setup, env: { ...setup.env, HTTP_FAST_PATH: String(fastPath) } });
  const fast = cleanup.use(await start(true));
  const fastify = cleanup.use(await start(false));
  await Promise.all([fast.listen(), fastify.listen()]);
  let slowly = 0;
  // What the fast path answers is no request to Node.
  const count = ({ url }: IncomingMessage) => {
    if (url !== WARM_UP_PATH) slowly++;
  };
  for (const { server } of Object.values(fast.current.doors)) server.on('request', count);
  const all = cleanup.move();

  async function ask(door: Door, pieces: readonly Piece[], options: AskOptions = {}): Promise<TwinReplies> {
    const { volatile = false, delivery = { fast: DELIVERY, fastify: DELIVERY } } = options;
    const askOne = async ({ urls }: TestService, id: string) => {
      const text = await talk(
        urls[door] ?? '',
        pieces.map((piece) => withDelivery(piece, id)),
        options,
      );
      return withoutPath(volatile ? withoutMoment(text) : text);
    };
    const [byFast, byFastify] = await Promise.all([
      askOne(fast, delivery.fast),
      askOne(fastify, delivery.fastify),
    ]);
    return { fast: byFast, fastify: byFastify };
  }

  return {
    fast,
    fastify,
    get slowly() {
      return slowly;
    },
    ask,
    async agree(door, pieces, options) {
      const { fast: byFast, fastify: byFastify } = await ask(door, pieces, options);
      assert.equal(byFast, byFastify);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const FAST_PATH = /(?<="HTTP_FAST_PATH":\{"value":")(?:true|false)(?=")/g;

/** A text without the one setting in which the two differ, where the management door shows it. */
function withoutPath(text: string): string {
  if (text.search(FAST_PATH) < 0) return text;
  return text.replaceAll(FAST_PATH, 'BOTH').replaceAll(/(?<=content-length: )\d+/g, 'N');
}

/** One connection: each piece is written when the one before has gone. */
function talk(url: string, pieces: readonly Piece[], options: AskOptions = {}): Promise<string> {
  const { silence = 400, ending } = options;
  const { protocol, host, hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const secure = protocol === 'https:';
    const place = { host: hostname, port: Number(port), allowHalfOpen: true };
    const socket = secure ? connectSecurely({ ...place, rejectUnauthorized: false }) : connect(place);
    const chunks: Buffer[] = [];
    let pause = new Silence(10_000, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      pause.stop();
      resolve(alike(Buffer.concat(chunks).toString('latin1'), host));
    });
    socket.on(secure ? 'secureConnect' : 'connect', async () => {
      await warmUp(socket);
      socket.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        pause.stop();
        pause = new Silence(silence, () => socket.destroy());
      });
      for (const piece of pieces) {
        if (!socket.writable) return;
        socket.write(piece);
        await nextTurn();
        await nextTurn();
      }
      if (ending === 'end') socket.end();
      if (ending === 'reset') socket.resetAndDestroy();
    });
  });
}

function withDelivery(piece: Piece, id: string): Piece {
  const text = typeof piece === 'string' ? piece : Buffer.from(piece).toString('latin1');
  return text.includes(DELIVERY) ? Buffer.from(text.replaceAll(DELIVERY, id), 'latin1') : piece;
}

/** What is of this reply alone is taken out, and the door's own address; their places are kept, the lengths of bodies too. */
function alike(text: string, host: string): string {
  return (
    text
      .replace(/(?<=\r\nx-request-id: )[0-9a-f]{8}-[0-9a-z]+(?=\r\n)/g, 'ID')
      .replace(/(?<=\r\nx-delivery-id: )[0-9a-f-]{36}(?=\r\n)/g, 'DELIVERY')
      .replace(/(?<=\r\nDate: )[^\r]+ GMT(?=\r\n)/g, 'DATE')
      // Each twin has users of its own.
      .replace(/(?<=\r\netag: )[^\r]+/g, 'TAG')
      .replace(/(?<="etag":"\\")\d+/g, 'TAG')
      .replace(/(?<=cursor=[np])[\w-]+/g, 'CURSOR')
      .replace(/(?<=\r\n)last-modified: [^\r]+\r\n/g, '')
      .replaceAll(host, 'HOST'.padEnd(host.length, '.'))
  );
}

/** The header by which the records are read. */
export type Authorization = Readonly<Record<string, string>>;

interface Shown {
  readonly timestamp: string;
  readonly timeTaken: string;
  readonly request: { readonly uri: string };
  readonly response: { readonly headers: Record<string, readonly string[]> };
}

const MAX_READINGS = 8;
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/;

interface Deliveries {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

type Read = (service: TestService) => Promise<unknown>;

/**
 * Reads something from both until they agree, since a reply is recorded a moment after the client has it; only a few
 * times, because each reading is recorded too.
 */
async function same(twins: TransportTwins, read: Read): Promise<unknown> {
  for (let readings = 0; ; readings++) {
    const [byFast, byFastify] = await Promise.all([read(twins.fast), read(twins.fastify)]);
    if (readings < MAX_READINGS && !isDeepStrictEqual(byFast, byFastify)) await sleep(5 * readings);
    else {
      assert.deepEqual(byFast, byFastify);
      return byFast;
    }
  }
}

async function show({ urls }: TestService, path: string, headers: Authorization): Promise<string> {
  const reply = await fetch(`${urls.management}/actuator${path}`, { headers });
  assert.equal(reply.status, 200, path);
  return reply.text();
}

/** What a path below the base path of the management door shows. */
export async function readJson(
  service: TestService,
  path: string,
  headers: Authorization = {},
): Promise<unknown> {
  return JSON.parse(await show(service, path, headers));
}

/** How many requests were counted, by door, route, method and status, and what became of them; the same of both. */
export async function sameCounts(twins: TransportTwins, headers: Authorization = {}): Promise<string> {
  const counted = await same(twins, async (service) =>
    (await show(service, '/prometheus', headers))
      .split('\n')
      .filter((line) =>
        /^(?:http_server_requests|(?:graphql|webhook)_\w+?)_(?:seconds_count|total)\{/.test(line),
      )
      // A scrape counts itself, when it is over.
      .filter((line) => !line.includes('uri="/actuator/prometheus"'))
      .sort(),
  );
  return (counted as readonly string[]).join('\n');
}

/** The last exchanges of both are recorded alike. */
export async function sameExchanges(
  twins: TransportTwins,
  { headers = {}, volatile = false }: { readonly headers?: Authorization; readonly volatile?: boolean } = {},
): Promise<void> {
  const own = [
    'x-request-id',
    'x-delivery-id',
    // Each twin has users and a key of its own.
    'etag',
    'last-modified',
    'link',
    ...(volatile ? ['content-length', 'content-disposition'] : []),
  ];
  await same(twins, async (service) => {
    const { exchanges } = (await readJson(service, '/httpexchanges', headers)) as {
      readonly exchanges: readonly Shown[];
    };
    return exchanges
      .filter(isAsked(service))
      .map(({ timestamp: _at, timeTaken: _taken, request, response }) => ({
        request: { ...request, uri: request.uri.replace(UUID, 'ID') },
        response: {
          ...response,
          headers: Object.entries(response.headers).filter(([name]) => !own.includes(name)),
        },
      }));
  });
}

/** Those that a test asks for, and not those by which it reads the records. */
function isAsked({ urls }: TestService): (exchange: Shown) => boolean {
  return ({ request }) => !request.uri.startsWith(urls.management ?? '');
}

/** Both have stored the same deliveries, in the same order. */
export async function sameDeliveries(twins: TransportTwins): Promise<void> {
  await same(twins, async (service) => {
    const { items } = (await readJson(service, '/deliveries?limit=1000')) as Deliveries;
    return items.map(({ id: _id, receivedAt: _at, ...delivery }) => delivery);
  });
}

/** The ids that both have given to their latest delivery. */
export async function latestDelivery(
  { fast, fastify }: TransportTwins,
  headers: Authorization = {},
): Promise<TwinReplies> {
  const idOf = async (service: TestService) => {
    const { items } = (await readJson(service, '/deliveries?limit=1', headers)) as Deliveries;
    return String(items[0]?.id);
  };
  return { fast: await idOf(fast), fastify: await idOf(fastify) };
}

/** The routes that the doors of a service list; `mappings` has to be exposed. */
export async function listedRoutes(
  service: TestService,
): Promise<readonly (readonly [Door, path: string])[]> {
  const { contexts } = (await readJson(service, '/mappings')) as {
    contexts: {
      portico: { mappings: { dispatcherServlets: Record<Door, readonly { predicate: string }[]> } };
    };
  };
  const doors = Object.entries(contexts.portico.mappings.dispatcherServlets);
  return doors.flatMap(([door, routes]) =>
    routes.map(({ predicate }) => [door as Door, /\[(.*)\]/.exec(predicate)?.[1] ?? ''] as const),
  );
}

/** What the replies of the management door say of their moment, and what stands in its place. */
const MOMENTS: readonly (readonly [RegExp, string | ((found: string) => string)])[] = [
  // health
  [/(?<="total":\d+,"free":)\d+/g, 'N'],
  // Unknown in the first ten seconds.
  [/(?<="details":\{)(?:"p99Ms":\d+,)?(?="thresholdMs")/g, '"p99Ms":N,'],
  // info
  [/(?<="(?:startTime|currentTime|uptime)":")[^"]+/g, 'TIME'],
  [/(?<="(?:used|committed)":)\d+/g, 'N'],
  // metrics
  [/(?<="statistic":"[A-Z_]+","value":)[\d.e-]+/g, 'N'],
  // deliveries; what is named like one
  [/(?<="(?:id|name)":")[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?=")/g, 'ID'],
  [/(?<="receivedAt":")[^"]+/g, 'TIME'],
  // heapdump, cpuprofile
  [/(?<=filename="portico-\d+-)[\dT-]+(?=\.)/g, 'TIME'],
  // history, requests, logtail
  [/^\{"window":"\d+[mh]","interval":.*\}$/g, 'HISTORY'],
  [/(?<=^\{"(?:requests|lines)":\[)\{.*\}(?=\]\}$)/g, ''],
  // eventloop
  [/^\{"window":.*\}$/, (text) => text.replace(/(?<="window":")[^"]+|(?<=":)[\d.]+/g, 'N')],
  // threaddump: the stack ends in the transport.
  [
    /"threadState":"RUNNABLE"(.*?)"inNative":(?:true|false)(.*?)"stackTrace":\[.*?\](?=,"lockedMonitors")/g,
    '$1$2',
  ],
  [/^\S+Z(?=\nThreads of Node)/g, 'TIME'],
  [/(?<=\n {3}State: RUNNABLE)(?:\n\tat .*)+/g, ''],
  // openapi
  [/(?<="url":"http:\/\/[\w.-]+:)\d+/g, 'PORT'],
  // auditevents: recorded later, with ids of their own
  [/(?<=^\{"events":\[)\{.*\}(?=\]\}$)/g, ''],
  // httpexchanges: a request on the same connection may be recorded only after the next one has come.
  [/(?<=^\{"exchanges":\[)\{.*\}(?=\]\}$)/g, ''],
];

/** Replies of the management door to one connection, without what they say of their moment. */
export function withoutMoment(text: string): string {
  return text
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .map(replyWithoutMoment)
    .join('');
}

function replyWithoutMoment(reply: string): string {
  const end = reply.indexOf('\r\n\r\n') + 4;
  const head = lasting(reply.slice(0, end));
  const written = reply.slice(end);
  const body = /\r\nTransfer-Encoding: chunked\r\n/.test(head) ? joined(written) : written;
  const rest = lasting(body.startsWith('# ') ? withoutSamples(body) : body);
  // A reply to HEAD has the length of a body that is not there to look at.
  const hasItsLength = (length: string) => body === '' || (rest !== body && Number(length) === body.length);
  return (
    head.replace(/(?<=\r\ncontent-length: )\d+/, (length) => (hasItsLength(length) ? 'LENGTH' : length)) +
    rest
  );
}

function lasting(text: string): string {
  return MOMENTS.reduce(
    (rest, [moment, instead]) =>
      typeof instead === 'string' ? rest.replace(moment, instead) : rest.replace(moment, instead),
    text,
  );
}

/** The chunks of a chunked body as one text. */
function joined(written: string): string {
  let body = '';
  for (let at = 0; ; ) {
    const lineEnd = written.indexOf('\r\n', at);
    const size = Number.parseInt(written.slice(at, lineEnd), 16);
    if (!(size > 0)) return body + written.slice(at);
    body += written.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}

/** The samples of Prometheus without their values, and without those that only some moments have. */
function withoutSamples(body: string): string {
  return body
    .split('\n')
    .filter((line) => !/^(?:nodejs_gc_duration|http_server_requests)_seconds\w*\{/.test(line))
    .map((line) => (line.startsWith('#') ? line : line.replace(/ \S+$/, ' N')))
    .join('\n');
}
