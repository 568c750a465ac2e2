import type { HttpRequest } from '../load/load.ts';
import { type Contender, compare, contendersOf, type Measured } from '../measure/compare.ts';
import { ask, checkSameAnswers, parsed } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { type BookServers, type Engine, newBooks, startBookServers } from '../servers/books.ts';
import type { Workbench } from '../workbench.ts';

const BOOKS = 200_000;
const LIMIT = 100;
const BATCH = 10;
/** The pages that are read: the first ones, and those that end with this one. */
const PAGES = { count: 50, last: 1_000 };

const ABOUT: Readonly<Record<Engine, string>> = {
  sqlite:
    'The peer is Express with better-sqlite3, prepared statements and the same checks written by hand; both sync each commit to the disk.',
  postgres:
    'The peer is Fastify with a pool of 10 connections of the same driver (pg), named statements and the same checks written by hand. PostgreSQL may use all cores.',
};
const IN: Readonly<Record<Engine, string>> = { sqlite: 'on SQLite', postgres: 'on PostgreSQL' };

/** A load of both engines. Targets are those of the rate, relative to the peer. */
interface Load {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly connections: number;
  readonly books: number;
  readonly targets: Readonly<Record<Engine, number>>;
  /** Number of writes in a request of Portico, if they are counted instead of requests. */
  readonly writes?: number;
  contenders(servers: BookServers): Promise<readonly Contender[]>;
}

const reads: readonly HttpRequest[] = Array.from({ length: 1_000 }, (_, i) => get(`/books/${i + 1}`));

const loads: readonly Load[] = [
  {
    name: 'relation-row',
    title: 'Relations: one row by its key',
    about: 'GET `/books/7`, 1,000 rows in turn, of a relation with two references, 64 connections.',
    connections: 64,
    books: 1_000,
    targets: { sqlite: 1.7, postgres: 1.25 },
    contenders: async (servers) => same(servers, reads),
  },
  {
    name: 'relation-page',
    title: 'Relations: pages of a filtered list by cursor',
    about:
      `GET of ${PAGES.count} pages of ${LIMIT} books of one publisher, of two with ${BOOKS.toLocaleString('en-US')} books together, up to page ` +
      `${PAGES.last}, 8 connections. Portico goes by its signed cursors, the peer by the last id. \`Portico, first pages\` shows that the place of a page does not matter.`,
    connections: 8,
    books: BOOKS,
    targets: { sqlite: 1.5, postgres: 1.3 },
    contenders: (servers) => pageContenders(servers),
  },
  {
    name: 'relation-create',
    title: 'Relations: durable creates',
    about:
      'POST `/books` with 100 bodies in turn, with two references, 64 connections. Every answer means that the row is synced to the disk. Portico also records the change as an event; the peer does not.',
    connections: 64,
    books: 1,
    targets: { sqlite: 8, postgres: 2 },
    contenders: async (servers) => same(servers, newBooks),
  },
  {
    name: 'relation-batch',
    title: 'Relations: writes in batches of 10',
    about:
      'POST `/_batch` with 10 new books in one transaction, 64 connections, beside as many single creates of the peer as it can do. Rate and processor time are those of a write.',
    connections: 64,
    books: 1,
    targets: { sqlite: 5, postgres: 3 },
    writes: BATCH,
    contenders: batchContenders,
  },
];

/** The rows of both engines. */
export const relationRows: readonly Row[] = loads.flatMap((load) =>
  (['sqlite', 'postgres'] as const).map((engine): Row => {
    const name = engine === 'sqlite' ? load.name : `${load.name}-postgres`;
    const title = `${load.title}, ${IN[engine]}`;
    return {
      name,
      title,
      about: `${load.about} ${ABOUT[engine]}`,
      async run(bench) {
        const servers = await startBookServers(bench, engine, load.books);
        const measured = await measure(bench, load, servers);
        const rate = { [servers.peerLabel]: load.targets[engine] };
        const targets = load.writes === undefined ? { rate, p99: 1 } : { rate };
        return summarise({ measured, targets, name, title });
      },
    };
  }),
);

async function measure(bench: Workbench, load: Load, servers: BookServers): Promise<readonly Measured[]> {
  const contenders = await load.contenders(servers);
  const measured = await compare(bench, contenders, { connections: load.connections });
  const { writes = 1 } = load;
  return measured.map(({ label, rounds }) => {
    if (label !== 'Portico') return { label, rounds };
    const ofWrites = rounds.map((round) => ({
      ...round,
      perSecond: round.perSecond * writes,
      cpu: round.cpu / writes,
    }));
    return { label, rounds: ofWrites };
  });
}

async function batchContenders(servers: BookServers): Promise<readonly Contender[]> {
  const writes = newBooks.map(({ method, path, body = '' }) => ({ method, path, body: JSON.parse(body) }));
  const batches = Array.from({ length: writes.length / BATCH }, (_, i): HttpRequest => {
    const body = JSON.stringify({ writes: writes.slice(i * BATCH, (i + 1) * BATCH) });
    return { method: 'POST', path: '/_batch', headers: { 'content-type': 'application/json' }, body };
  });
  const [first = get('')] = batches;
  const answer = await ask(servers.portico, first);
  const { results = [] } = Object(parsed(answer));
  if (results.length !== BATCH || results.some(({ status }: { status: number }) => status !== 201))
    throw new Error(`A batch was answered with ${answer.text.slice(0, 500)}`);
  return [
    { label: 'Portico', server: servers.portico, requests: batches },
    { label: servers.peerLabel, server: servers.peer, requests: newBooks },
  ];
}

/** Both servers with the same requests, to which they answer alike. */
async function same(servers: BookServers, requests: readonly HttpRequest[]): Promise<readonly Contender[]> {
  const byLabel = { Portico: servers.portico, [servers.peerLabel]: servers.peer };
  await checkSameAnswers(byLabel, requests.slice(0, 3));
  return contendersOf(byLabel, requests);
}

async function pageContenders({ portico, peer, peerLabel }: BookServers): Promise<readonly Contender[]> {
  const path = `/books?publisher_id=1&limit=${LIMIT}`;
  const [own, others] = await Promise.all([pagesOf(portico.origin, path), pagesOf(peer.origin, path)]);
  const { count, last } = PAGES;
  for (const nth of [0, 1, last - 1]) {
    const [one, other] = [own[nth], others[nth]];
    if (one === undefined || other === undefined) throw new Error(`there is no page ${nth + 1}`);
    const texts = await Promise.all([rowsOf(portico.origin + one), rowsOf(peer.origin + other)]);
    if (texts[0] !== texts[1])
      throw new Error(`Page ${nth + 1} differs: ${texts.map((text) => text.slice(0, 300))}`);
  }
  return [
    { label: 'Portico', server: portico, requests: own.slice(last - count, last).map(get) },
    { label: peerLabel, server: peer, requests: others.slice(last - count, last).map(get) },
    { label: 'Portico, first pages', server: portico, requests: own.slice(0, count).map(get) },
  ];
}

/** The paths of all pages of a list, by the links of the replies. */
async function pagesOf(origin: string, first: string): Promise<readonly string[]> {
  const paths = [first];
  for (let path: string | undefined = first; path !== undefined; ) {
    const response = await fetch(origin + path);
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`GET ${path} answered ${response.status}`);
    path = response.headers.get('link')?.match(/<([^>]*)>; rel="next"/)?.[1];
    if (path !== undefined) paths.push(path);
  }
  return paths;
}

/** The rows of a page, with the members in one order. */
async function rowsOf(url: string): Promise<string> {
  const rows = (await (await fetch(url)).json()) as readonly Readonly<Record<string, unknown>>[];
  return JSON.stringify(rows.map((row) => Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

function get(path: string): HttpRequest {
  return { method: 'GET', path };
}
