import { compareTransfers, exportedLines, importLines, NDJSON } from '../measure/transfers.ts';
import type { Row, RowResult } from '../row.ts';
import { startPorticoUsers, startUsersPeer } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';
import { listUsers } from './list-size.ts';

export const restImport: Row = {
  name: 'rest-import',
  title: `REST: an import of ${listUsers().toLocaleString('en-US')} users`,
  about:
    `POST \`/users\` of ${listUsers().toLocaleString('en-US')} lines of NDJSON, one client, a report with the totals. ` +
    'Both read the lines as they come, judge each, and store 2,000 per commit, which is synced. `PORTICO_BENCH_USERS` sets the number.',
  run: (bench) => transfersOf(bench, 'rest-import', 'Users imported per second', 1, importUsers),
};

export const restExport: Row = {
  name: 'rest-export',
  title: `REST: an export of ${listUsers().toLocaleString('en-US')} users`,
  about:
    `GET \`/users\` with \`Accept: ${NDJSON}\` of ${listUsers().toLocaleString('en-US')} users in SQLite, one client. ` +
    'Both read 1,000 users at a time as the client takes them. `PORTICO_BENCH_USERS` sets the number.',
  run: (bench) => transfersOf(bench, 'rest-export', 'Users exported per second', listUsers(), exportUsers),
};

async function transfersOf(
  bench: Workbench,
  file: string,
  title: string,
  stored: number,
  transfer: (server: Server) => Promise<number>,
): Promise<RowResult> {
  const servers = {
    Portico: await startPorticoUsers(bench, stored),
    Express: await startUsersPeer(bench, 'express-lists', stored),
  };
  return compareTransfers(bench, {
    file,
    title,
    items: 'users',
    count: listUsers(),
    servers,
    transfer,
    atLeast: 1,
  });
}

const importUsers = ({ origin }: Server) => importLines(`${origin}/users`, lines(listUsers()));
const exportUsers = ({ origin }: Server) => exportedLines(`${origin}/users`);

function* lines(users: number): Generator<string> {
  for (let i = 0; i < users; i++) yield `{"name":"User ${i}","email":"user${i}@example.com"}\n`;
}
