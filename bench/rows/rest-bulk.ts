import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { cpuTime, memoryUse, resetPeak } from '../machine/process-use.ts';
import { grouped, range } from '../measure/figures.ts';
import { median, ratio } from '../measure/statistics.ts';
import type { Row, RowResult } from '../row.ts';
import { startPorticoUsers, startUsersPeer } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';
import { listUsers } from './list-size.ts';

const NDJSON = 'application/x-ndjson';
/** Bytes per write of the client. */
const PIECE = 64 * 1024;

export const restImport: Row = {
  name: 'rest-import',
  title: `REST: an import of ${listUsers().toLocaleString('en-US')} users`,
  about:
    `POST \`/users\` of ${listUsers().toLocaleString('en-US')} lines of NDJSON, one client, a report with the totals. ` +
    'Both read the lines as they come, judge each, and store 2,000 per commit, which is synced. `PORTICO_BENCH_USERS` sets the number.',
  run: (bench) => bulk(bench, 'rest-import', 'Users imported per second', 1, importUsers),
};

export const restExport: Row = {
  name: 'rest-export',
  title: `REST: an export of ${listUsers().toLocaleString('en-US')} users`,
  about:
    `GET \`/users\` with \`Accept: ${NDJSON}\` of ${listUsers().toLocaleString('en-US')} users in SQLite, one client. ` +
    'Both read 1,000 users at a time as the client takes them. `PORTICO_BENCH_USERS` sets the number.',
  run: (bench) => bulk(bench, 'rest-export', 'Users exported per second', listUsers(), exportUsers),
};

interface Transfer {
  readonly perSecond: number;
  /** CPU time of the server for one user, in microseconds. */
  readonly cpu: number;
  /** Growth of the server's memory to its peak, in megabytes. */
  readonly growth: number;
}

/** Transfers all users with each server, round by round; rejects if any are missing. */
async function bulk(
  bench: Workbench,
  file: string,
  title: string,
  stored: number,
  transfer: (server: Server, users: number) => Promise<number>,
): Promise<RowResult> {
  const users = listUsers();
  const servers = {
    Portico: await startPorticoUsers(bench, stored),
    Express: await startUsersPeer(bench, 'express-lists', stored),
  };
  const found: Record<keyof typeof servers, Transfer[]> = { Portico: [], Express: [] };
  const labels = Object.keys(servers) as (keyof typeof servers)[];
  for (let round = -1; round < bench.pace.rounds; round++) {
    for (const label of round % 2 === 0 ? labels : labels.toReversed()) {
      bench.say(round < 0 ? `warming up ${label}` : `round ${round + 1} of ${bench.pace.rounds}: ${label}`);
      const measured = await measure(servers[label], users, transfer);
      if (round >= 0) found[label].push(measured);
    }
  }
  const of = (label: keyof typeof servers, key: keyof Transfer) => found[label].map((each) => each[key]);
  return {
    tables: [
      {
        head: ['', 'users/s', 'lowest-highest', 'CPU us/user', 'memory growth MB'],
        lines: labels.map((label) => [
          label,
          grouped(median(of(label, 'perSecond'))),
          range(of(label, 'perSecond')),
          median(of(label, 'cpu')).toFixed(2),
          median(of(label, 'growth')).toFixed(0),
        ]),
      },
    ],
    findings: [
      {
        what: 'Portico / Express',
        unit: 'x',
        ...ratio(of('Portico', 'perSecond'), of('Express', 'perSecond')),
        target: { atLeast: 1 },
      },
      { what: 'Portico: growth of its memory', value: median(of('Portico', 'growth')), unit: 'MB' },
    ],
    plots: [
      {
        kind: 'bars',
        file,
        title,
        unit: 'users/s',
        bars: labels.map((label) => ({ label, values: of(label, 'perSecond') })),
      },
    ],
    notes: [],
  };
}

async function measure(
  server: Server,
  users: number,
  transfer: (server: Server, users: number) => Promise<number>,
): Promise<Transfer> {
  resetPeak(server.pid);
  const memory = memoryUse(server.pid)?.now ?? Number.NaN;
  const cpu = cpuTime(server.pid);
  const begin = performance.now();
  const moved = await transfer(server, users);
  const seconds = (performance.now() - begin) / 1e3;
  if (moved !== users) throw new Error(`${server.origin} moved ${moved} of ${users} users`);
  return {
    perSecond: users / seconds,
    cpu: ((cpuTime(server.pid) - cpu) / users) * 1e6,
    growth: (memoryUse(server.pid)?.peak ?? Number.NaN) - memory,
  };
}

/** Resolves to the number of created users in the report. */
async function importUsers({ origin }: Server, users: number): Promise<number> {
  const headers = { 'content-type': NDJSON, prefer: 'return=minimal' };
  const sent = request(`${origin}/users`, { method: 'POST', headers });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  await pipeline(lines(users), sent);
  let text = '';
  for await (const chunk of (await answered)[0].setEncoding('utf8')) text += chunk;
  return Number((JSON.parse(text) as { readonly created: number }).created);
}

function* lines(users: number): Generator<string> {
  let text = '';
  for (let i = 0; i < users; i++) {
    text += `{"name":"User ${i}","email":"user${i}@example.com"}\n`;
    if (text.length < PIECE) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Resolves to the number of lines. */
async function exportUsers({ origin }: Server): Promise<number> {
  const sent = request(`${origin}/users`, { headers: { accept: NDJSON } });
  sent.end();
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  let count = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) count++;
  }
  return count;
}
