/**
 * Measures how long events take to healthy endpoints while others hang, and while one tenant floods the service.
 * `node bench/sending/main.ts [sqlite|postgres]`; about three minutes for both.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { startPortico } from '../../test/support/portico-process.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';

const TENANTS = 1_000;
const ENDPOINTS_PER_TENANT = 10;
/** Of each tenant's endpoints so many hang. */
const HANGING_PER_TENANT = 1;
/** Events per second to all tenants in turn, each to ten endpoints. */
const RATE = Number(process.env.SENDING_RATE ?? 40);
/** Length of each part, in milliseconds. */
const PART = Number(process.env.SENDING_SECONDS ?? 20) * 1_000;
const FLOOD = 50_000;
const FLOOD_ANSWER = 100;
/** Tenants that publish an event per second beside the flood. */
const OTHERS = 50;
const ENGINES = ['sqlite', 'postgres'] as const;

/** Receives events at `/healthy...` and at once, at `/slow...` later. */
class Receiver {
  readonly server: Server;
  readonly hanging: NetServer;
  /** Times from publication to the first arrival, in milliseconds, by part. */
  readonly times = new Map<string, number[]>();
  readonly #seen = new Set<string>();
  slow = 0;

  constructor() {
    this.server = createServer(async (request, response) => {
      const now = performance.now();
      try {
        const { data } = JSON.parse(await text(request));
        if (request.url?.startsWith('/slow')) {
          this.slow++;
          await delay(FLOOD_ANSWER);
        } else this.#note(`${data.n} ${request.url}`, data.part, now - data.at);
        response.writeHead(204).end();
      } catch {
        response.destroy();
      }
    });
    // Takes connections and never answers.
    this.hanging = createNetServer((socket) => void socket.on('error', () => {}).resume());
  }

  #note(key: string, part: string, time: number): void {
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    const times = this.times.get(part) ?? [];
    this.times.set(part, times);
    times.push(time);
  }

  async listen(): Promise<{ readonly healthy: string; readonly hanging: string }> {
    const urls = [this.server, this.hanging].map(async (server) => {
      server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
      await once(server, 'listening');
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    const [healthy = '', hanging = ''] = await Promise.all(urls);
    return { healthy, hanging };
  }
}

function summary(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0).toFixed(0);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms (${sorted.length})`;
}

const say = (line: string) => process.stdout.write(`${line}\n`);

async function measure(engine: (typeof ENGINES)[number]): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  await writeFile(
    join(folder, 'portico.config.js'),
    `export default { webhook: { sending: { allowPrivate: true } } };`,
  );
  const server = engine === 'postgres' ? cleanup.use(await startPostgres({ sync: true })) : undefined;
  const receiver = new Receiver();
  const urls = await receiver.listen();
  cleanup.defer(() => {
    receiver.server.close();
    receiver.server.closeAllConnections();
    receiver.hanging.close();
  });
  const portico = cleanup.use(
    startPortico({
      cwd: folder,
      env: {
        INTERFACES: 'rest,webhook',
        ...(server !== undefined && { DATABASE_URL: await server.createDatabase() }),
      },
    }),
  );
  await portico.ready();

  async function post(path: string, body: unknown, type = 'application/json'): Promise<void> {
    const response = await fetch(`${portico.urls.rest}${path}`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const answer = await response.text();
    assert.ok(response.ok, answer);
  }
  async function makeEndpoints(list: readonly (readonly [tenant: string, settings: object])[]) {
    const waiting = list.slice();
    const make = async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
        await post(`/webhooks/tenants/${next[0]}/endpoints`, next[1]);
    };
    await Promise.all(Array.from({ length: 16 }, make));
  }
  let published = 0;
  let refused = 0;
  /** Publishes for some time, `rate` times a second. */
  async function publishing(part: string, rate: number, tenant: (n: number) => string, time = PART) {
    const acknowledged: number[] = [];
    const sent: Promise<void>[] = [];
    const begin = performance.now();
    for (let i = 0; performance.now() - begin < time; i++) {
      await delay(Math.max(0, begin + (i * 1_000) / rate - performance.now()));
      const at = performance.now();
      const event = { tenant: tenant(i), type: 'a', data: { part, n: published++, at } };
      sent.push(
        post('/events', event).then(
          () => void acknowledged.push(performance.now() - at),
          // Refused, and not published again.
          () => void refused++,
        ),
      );
    }
    await Promise.all(sent);
    return acknowledged;
  }
  async function arrivals(part: string, count: number): Promise<void> {
    for (let waits = 0; (receiver.times.get(part)?.length ?? 0) < count && waits < 200; waits++)
      await delay(100);
    say(`  ${part}: ${summary(receiver.times.get(part) ?? [])} of ${count}`);
  }

  const name = (n: number) => `t${n % TENANTS}`;
  const places = Array.from({ length: TENANTS * ENDPOINTS_PER_TENANT }, (_, i) => i);
  const isHanging = (i: number) => i < TENANTS * HANGING_PER_TENANT;
  const healthyEach = ENDPOINTS_PER_TENANT - HANGING_PER_TENANT;
  let begin = performance.now();
  await makeEndpoints(
    places.filter((i) => !isHanging(i)).map((i) => [name(i), { url: `${urls.healthy}/healthy/${i}` }]),
  );
  say(
    `${engine}: ${TENANTS * healthyEach} endpoints made in ${((performance.now() - begin) / 1_000).toFixed(1)} s`,
  );

  const count = published;
  let acknowledged = await publishing('without hanging endpoints', RATE, name);
  say(`  acknowledged: ${summary(acknowledged)}`);
  await arrivals('without hanging endpoints', (published - count) * healthyEach);

  await makeEndpoints(places.filter(isHanging).map((i) => [name(i), { url: `${urls.hanging}/${i}` }]));
  // Each of them has an attempt that hangs, and events that wait.
  await publishing('warm-up', TENANTS / 20, name, 20_000);
  const before = published;
  acknowledged = await publishing(`with ${TENANTS * HANGING_PER_TENANT} that hang`, RATE, name, 2 * PART);
  say(`  acknowledged: ${summary(acknowledged)}`);
  await arrivals(`with ${TENANTS * HANGING_PER_TENANT} that hang`, (published - before) * healthyEach);

  await makeEndpoints([
    ...Array.from({ length: 4 }, (_, i): [string, object] => ['flood', { url: `${urls.healthy}/slow/${i}` }]),
    ...Array.from({ length: OTHERS }, (_, i): [string, object] => [
      `o${i}`,
      { url: `${urls.healthy}/other/${i}` },
    ]),
  ]);
  let sent = published;
  await publishing('others before the flood', OTHERS, (n) => `o${n % OTHERS}`, PART / 2);
  await arrivals('others before the flood', published - sent);
  sent = published;
  const others = publishing('others during the flood', OTHERS, (n) => `o${n % OTHERS}`);
  begin = performance.now();
  for (let i = 0; i < FLOOD; i += 1_000) {
    const lines = Array.from({ length: 1_000 }, (_, k) =>
      JSON.stringify({ tenant: 'flood', type: 'a', data: { k: i + k } }),
    );
    await post('/events', lines.join('\n'), 'application/x-ndjson');
  }
  say(
    `  ${FLOOD} events to 4 slow endpoints stored in ${((performance.now() - begin) / 1_000).toFixed(1)} s`,
  );
  await others;
  await arrivals('others during the flood', published - sent);
  say(`  of the flood ${receiver.slow} requests came meanwhile`);
  if (refused > 0) say(`  ${refused} events were refused with a 503`);
  if (portico.stderr.includes('Warning')) say(portico.stderr);
}

const wanted = process.argv[2];
for (const engine of ENGINES) if (wanted === undefined || wanted === engine) await measure(engine);
