import assert from 'node:assert/strict';
import type { HttpRequest } from '../load/load.ts';
import { type Contender, compare } from '../measure/compare.ts';
import { ask, parsed } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import { AUTHORS_WITH_BOOKS } from '../peers/books.ts';
import type { Row } from '../row.ts';
import { AUTHORS, type BookServers, type Engine, startBookServers } from '../servers/books.ts';
import { graphqlPost } from '../servers/graphql.ts';
import { startPeer } from '../servers/peer.ts';
import type { Workbench } from '../workbench.ts';

const { authors: LISTED, books: EMBEDDED } = AUTHORS_WITH_BOOKS;
/** Each author has as many books as are shown. */
const BOOKS = AUTHORS * EMBEDDED;
/** The authors in front of each page. */
const STARTS: readonly number[] = Array.from({ length: AUTHORS / LISTED }, (_, i) => i * LISTED);
const CONNECTIONS = 8;
const IN: Readonly<Record<Engine, string>> = { sqlite: 'on SQLite', postgres: 'on PostgreSQL' };
const POSTGRAPHILE = 'PostGraphile 5';

const get = (path: string): HttpRequest => ({ method: 'GET', path });
const restPages = STARTS.map((id) =>
  get(
    `/authors?id:gte=${id + 1}&limit=${LISTED}&fields=id,name,books(id,title,price)&embed.books.limit=${EMBEDDED}`,
  ),
);
const graphqlPages = STARTS.map((id) =>
  graphqlPost(
    'query ($id: ID!) { authors(where: { id: { gte: $id } }, limit: 100) { id name books(limit: 10) { id title price } } }',
    { id: String(id + 1) },
  ),
);
const postgraphilePages = STARTS.map((offset) =>
  graphqlPost(
    'query ($offset: Int!) { allAuthors(first: 100, offset: $offset) { nodes { rowId name booksByAuthorId(first: 10) { nodes { rowId title price } } } } }',
    { offset },
  ),
);

/** An author with books, whatever the names of members around them. */
interface Shown {
  readonly name: string;
  readonly books: readonly { readonly title: string; readonly price: string }[];
}

/** Lists with the rows of another relation in each row. */
export const relationEmbeds: readonly Row[] = (['sqlite', 'postgres'] as const).flatMap((engine) => [
  embedRow(engine),
  graphqlRow(engine),
]);

function embedRow(engine: Engine): Row {
  const name = engine === 'sqlite' ? 'relation-embed' : 'relation-embed-postgres';
  const title = `Relations: ${LISTED} rows with ${EMBEDDED} of another relation in each, ${IN[engine]}`;
  return {
    name,
    title,
    about:
      `GET of pages of ${LISTED} authors with ${EMBEDDED} books each, ${CONNECTIONS} connections. The peer reads the books of a page in one ` +
      'statement and groups them, or in a statement for each author.',
    async run(bench) {
      const servers = await startBookServers(bench, engine, BOOKS);
      const { peer, peerLabel } = servers;
      const contenders: readonly Contender[] = [
        { label: 'Portico', server: servers.portico, requests: restPages },
        { label: `${peerLabel}, one IN`, server: peer, requests: peerPages('in') },
        { label: `${peerLabel}, N+1`, server: peer, requests: peerPages('each') },
      ];
      await checkSameRows(contenders);
      const measured = await compare(bench, contenders, { connections: CONNECTIONS });
      const rate = {
        [`${peerLabel}, one IN`]: engine === 'sqlite' ? 1.4 : 1.3,
        [`${peerLabel}, N+1`]: 3,
      };
      return summarise({ measured, targets: { rate, p99: 1 }, name, title });
    },
  };
}

function graphqlRow(engine: Engine): Row {
  const name = engine === 'sqlite' ? 'relation-graphql' : 'relation-graphql-postgres';
  const title = `Relations: the same by GraphQL, ${IN[engine]}`;
  return {
    name,
    title,
    about:
      `POST of a query for ${LISTED} authors with ${EMBEDDED} books each, ${CONNECTIONS} connections, beside the same list by REST` +
      `${engine === 'postgres' ? ` and ${POSTGRAPHILE} on the same server` : ''}.`,
    async run(bench) {
      const servers = await startBookServers(bench, engine, BOOKS);
      const contenders: readonly Contender[] = [
        { label: 'GraphQL of Portico', server: servers.graphql, requests: graphqlPages },
        { label: 'REST of Portico', server: servers.portico, requests: restPages },
        ...(await postgraphileOf(bench, servers)),
      ];
      await checkSameRows(contenders);
      const measured = await compare(bench, contenders, { connections: CONNECTIONS });
      const rate = { 'REST of Portico': 0.85, [POSTGRAPHILE]: 2 };
      return summarise({ measured, targets: { rate }, name, title });
    },
  };
}

function peerPages(way: 'in' | 'each'): readonly HttpRequest[] {
  return STARTS.map((id) => get(`/authors?after=${id}&way=${way}`));
}

async function postgraphileOf(
  bench: Workbench,
  { peerDatabase }: BookServers,
): Promise<readonly Contender[]> {
  if (peerDatabase === undefined) return [];
  const server = await startPeer(bench, 'postgraphile', { env: { DATABASE_URL: peerDatabase } });
  return [{ label: POSTGRAPHILE, server, requests: postgraphilePages }];
}

/** Rejects unless all contenders show the same authors and books. */
async function checkSameRows(contenders: readonly Contender[]): Promise<void> {
  for (const nth of [0, STARTS.length - 1]) {
    let expected: readonly Shown[] | undefined;
    for (const { label, server, requests } of contenders) {
      const request = requests[nth];
      if (request === undefined) throw new Error(`${label} has too few requests`);
      const answer = await ask(server, request);
      const shown = authorsOf(parsed(answer));
      assert.equal(shown.length, LISTED, `${label}: ${answer.text.slice(0, 500)}`);
      expected ??= shown;
      assert.deepEqual(shown, expected, label);
    }
  }
}

function authorsOf(answer: unknown): readonly Shown[] {
  const { data = { authors: answer } } = Object(answer);
  const list = data?.authors ?? data?.allAuthors?.nodes;
  return Array.isArray(list) ? list.map(shownAuthor) : [];
}

function shownAuthor(author: unknown): Shown {
  const { name, books, booksByAuthorId } = Object(author);
  const own: readonly { readonly title: string; readonly price: string }[] = books ?? booksByAuthorId.nodes;
  return { name, books: own.map(({ title, price }) => ({ title, price })) };
}
