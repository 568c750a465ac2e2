import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { freePort } from '../../test/support/free-port.ts';
import type { HttpRequest } from '../load/load.ts';
import type { Workbench } from '../workbench.ts';
import { startDatabaseServer } from './database-server.ts';
import { startPeer } from './peer.ts';
import { startPortico } from './portico.ts';
import type { Server } from './server.ts';
import { sqliteDriver } from './sqlite-driver.ts';

/** A relation with two references, as `bench/peers/express-books.ts` has its table. */
const RELATIONS = {
  authors: { columns: { name: { type: 'text', max: 120 } } },
  publishers: { columns: { name: { type: 'text', max: 120 } } },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      pages: { type: 'integer', min: 1 },
      price: { type: 'decimal', precision: 10, scale: 2, min: '0' },
      published: { type: 'date', nullable: true },
      author: { type: 'reference', to: 'authors' },
      publisher: { type: 'reference', to: 'publishers' },
    },
  },
  editions: {
    columns: {
      isbn: { type: 'text', max: 13, unique: true },
      title: { type: 'text', max: 200 },
      pages: { type: 'integer', min: 1 },
      price: { type: 'decimal', precision: 10, scale: 2, min: '0' },
      published: { type: 'date', nullable: true },
      author: { type: 'reference', to: 'authors' },
      publisher: { type: 'reference', to: 'publishers' },
    },
  },
};

export type Engine = 'sqlite' | 'postgres';

/** Portico with `RELATIONS`, and the peer of the engine, with the same rows. */
export interface BookServers {
  readonly portico: Server;
  readonly peer: Server;
  readonly peerLabel: string;
  /** Portico's GraphQL over the same rows. */
  readonly graphql: Server;
  /** The database of the peer, on PostgreSQL. */
  readonly peerDatabase: string | undefined;
}

/** Starts Portico and the peer of an engine with this number of books, half of each of two publishers. */
export async function startBookServers(
  bench: Workbench,
  engine: Engine,
  books: number,
): Promise<BookServers> {
  const folder = bench.folder();
  writeFileSync(join(folder, 'portico.config.json'), JSON.stringify({ relations: RELATIONS }));
  const port = await freePort();
  const start = async (env: Readonly<Record<string, string>>) => {
    const portico = await startPortico(bench, 'rest', {
      folder,
      doors: ['rest', 'graphql'],
      env: { ...env, GRAPHQL_PORT: String(port) },
    });
    return { portico, graphql: { ...portico, origin: `http://127.0.0.1:${port}` } };
  };
  if (engine === 'sqlite') {
    const own = await start({});
    const peer = await startPeer(bench, 'express-books', {
      env: { SQLITE: sqliteDriver(bench.node).name },
    });
    for (const [file, price] of [
      [join(folder, 'portico.db'), 'price'],
      [join(peer.folder, 'books.db'), 'cents'],
    ] as const) {
      using db = new DatabaseSync(file, { timeout: 20_000 });
      db.exec('PRAGMA synchronous=OFF');
      const numbers = (count: number) =>
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
      // Both keep prices as cents.
      db.exec(fillText(price, '1 + i % 99999', numbers, books));
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    }
    return { ...own, peer, peerLabel: 'Express + better-sqlite3', peerDatabase: undefined };
  }
  const server = await startDatabaseServer(bench);
  const urls = { portico: await server.createDatabase(), peer: await server.createDatabase() };
  const own = await start({ DATABASE_URL: urls.portico });
  const peer = await startPeer(bench, 'fastify-books', { env: { DATABASE_URL: urls.peer } });
  const numbers = (count: number) => `WITH n AS (SELECT generate_series(1, ${count}) AS i)`;
  for (const url of Object.values(urls)) {
    await server.sql(fillText('price', '(1 + i % 99999) / 100.0', numbers, books), url);
    await server.sql('VACUUM ANALYZE', url);
  }
  return { ...own, peer, peerLabel: 'Fastify + pg', peerDatabase: urls.peer };
}

export const AUTHORS = 1_000;

/** The statements that insert the rows. Books have the next numbers of their table. */
function fillText(
  priceColumn: string,
  price: string,
  numbers: (count: number) => string,
  books: number,
): string {
  return `
    ${numbers(AUTHORS)} INSERT INTO authors (name) SELECT 'Author ' || i FROM n;
    ${numbers(2)} INSERT INTO publishers (name) SELECT 'Publisher ' || i FROM n;
    ${numbers(books)} INSERT INTO books (title, pages, ${priceColumn}, published, author_id, publisher_id)
      SELECT 'A book with the number ' || i, 1 + i % 900, ${price}, NULL, 1 + i % ${AUTHORS}, 1 + i % 2 FROM n`;
}

/** Bodies of new books. */
export const newBooks: readonly HttpRequest[] = Array.from({ length: 100 }, (_, i) => ({
  method: 'POST',
  path: '/books',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    title: `A new book with the number ${i}`,
    pages: 100 + i,
    price: `${i}.50`,
    published: '2024-02-29',
    author_id: 1 + i,
    publisher_id: 1 + (i % 2),
  }),
}));
