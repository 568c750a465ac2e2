import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { defaultOrder, writeCursor } from '../../src/relations/lists.ts';
import type { HttpRequest } from '../load/load.ts';
import { compare } from '../measure/compare.ts';
import { ask, parsed } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPeer } from '../servers/peer.ts';
import { startPorticoUsers, startUsersPeer } from '../servers/rest.ts';
import { sqliteDriver } from '../servers/sqlite-driver.ts';
import { listUsers } from './list-size.ts';

const LIMIT = 100;
const CONNECTIONS = 8;
/** Number of pages in the middle, so that no cache answers. */
const PAGES = 50;

export const restPage: Row = {
  name: 'rest-page',
  title: `REST: a page in the middle of ${listUsers().toLocaleString('en-US')} users`,
  about:
    `GET of ${PAGES} pages of ${LIMIT} users in the middle of ${listUsers().toLocaleString('en-US')} in SQLite, ${CONNECTIONS} connections. ` +
    'Portico goes by its cursors, Express by an offset as json-server does, and by the last id. ' +
    '`PORTICO_BENCH_USERS` sets the number of users.',
  async run(bench) {
    const users = listUsers();
    const middle = Math.floor(users / 2 / LIMIT);
    const pages = Array.from({ length: PAGES }, (_, i) => middle + i);
    const portico = await startPorticoUsers(bench, users);
    const express = await startUsersPeer(bench, 'express-lists', users);
    // A separate server, because work left from offsets would delay the other contender.
    const another = await startPeer(bench, 'express-lists', {
      folder: express.folder,
      env: { SQLITE: sqliteDriver(bench.node).name },
    });
    const key = cursorKey(join(portico.folder, 'portico.db'));
    const list = JSON.stringify([[], defaultOrder([])]);
    const contenders = [
      {
        label: 'Portico',
        server: portico,
        requests: pages.map((page) =>
          get(`limit=${LIMIT}&cursor=${writeCursor(key, list, { next: [page * LIMIT], backwards: false })}`),
        ),
      },
      {
        label: 'Express, offset',
        server: express,
        requests: pages.map((page) => get(`_limit=${LIMIT}&_page=${page + 1}`)),
      },
      {
        label: 'Express, last id',
        server: another,
        requests: pages.map((page) => get(`_limit=${LIMIT}&after=${page * LIMIT}`)),
      },
    ];
    const answers = new Set<string>();
    for (const { server, requests } of contenders) {
      const [first = get('')] = requests;
      answers.add(JSON.stringify(parsed(await ask(server, first))));
    }
    if (answers.size !== 1)
      throw new Error(`The pages differ: ${[...answers].map((text) => text.slice(0, 300))}`);
    const measured = await compare(bench, contenders, {
      connections: CONNECTIONS,
      // Offsets are slow.
      seconds: Math.max(4, bench.pace.seconds),
    });
    const targets = { rate: { 'Express, offset': 10, 'Express, last id': 1 } };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};

function get(query: string): HttpRequest {
  return { method: 'GET', path: `/users?${query}` };
}

/**
 * The key that signs cursors, from which the row makes cursors in the middle without listing all pages
 * before.
 */
function cursorKey(file: string): Uint8Array {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 20_000 });
  return db.prepare(`SELECT bytes FROM secrets WHERE name = 'cursor'`).get()?.bytes as Uint8Array;
}
