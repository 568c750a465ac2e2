import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { cpuTime, memoryUse, resetPeak } from '../machine/process-use.ts';
import type { Finding, RowResult } from '../row.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';
import { grouped, range } from './figures.ts';
import { median, ratio } from './statistics.ts';

/** Content type of lines of JSON. */
export const NDJSON = 'application/x-ndjson';
/** Bytes per write of the client. */
const PIECE = 64 * 1024;

/** A transfer of many items between a client and servers, of which the first is Portico. */
export interface Transfers {
  /** The name of the plot's file. */
  readonly file: string;
  readonly title: string;
  /** What an item is, such as `users`. */
  readonly items: string;
  readonly count: number;
  readonly servers: Readonly<Record<string, Server>>;
  /** Transfers all items in a round; resolves to how many were moved. */
  readonly transfer: (server: Server, round: number) => Promise<number>;
  /** How much of the peer's rate Portico should have at least. */
  readonly atLeast: number;
  /** How much Portico's memory may grow, in megabytes. Default: no target. */
  readonly growthAtMost?: number;
}

interface Transfer {
  readonly perSecond: number;
  /** CPU time of the server for one item, in microseconds. */
  readonly cpu: number;
  /** Growth of the server's memory to its peak, in megabytes. */
  readonly growth: number;
}

/** Transfers all items with each server, round by round; rejects if any are missing. */
export async function compareTransfers(bench: Workbench, transfers: Transfers): Promise<RowResult> {
  const { servers, items, growthAtMost } = transfers;
  const labels = Object.keys(servers);
  const found = new Map<string, Transfer[]>(labels.map((label) => [label, []]));
  for (let round = -1; round < bench.pace.rounds; round++) {
    for (const label of round % 2 === 0 ? labels : labels.toReversed()) {
      bench.say(round < 0 ? `warming up ${label}` : `round ${round + 1} of ${bench.pace.rounds}: ${label}`);
      const measured = await measure(servers[label] as Server, transfers, round);
      if (round >= 0) found.get(label)?.push(measured);
    }
  }
  const of = (label: string, key: keyof Transfer) => (found.get(label) ?? []).map((each) => each[key]);
  const [own = '', ...peers] = labels;
  return {
    tables: [
      {
        head: ['', `${items}/s`, 'lowest-highest', 'CPU us each', 'memory growth MB'],
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
      ...peers.map(
        (peer): Finding => ({
          what: `${own} / ${peer}`,
          unit: 'x',
          ...ratio(of(own, 'perSecond'), of(peer, 'perSecond')),
          target: { atLeast: transfers.atLeast },
        }),
      ),
      {
        what: `${own}: growth of its memory`,
        value: median(of(own, 'growth')),
        unit: 'MB',
        ...(growthAtMost === undefined ? {} : { target: { atMost: growthAtMost } }),
      },
    ],
    plots: [
      {
        kind: 'bars',
        file: transfers.file,
        title: transfers.title,
        unit: `${items}/s`,
        bars: labels.map((label) => ({ label, values: of(label, 'perSecond') })),
      },
    ],
    notes: [],
  };
}

async function measure(
  server: Server,
  { count, items, transfer }: Transfers,
  round: number,
): Promise<Transfer> {
  resetPeak(server.pid);
  const memory = memoryUse(server.pid)?.now ?? Number.NaN;
  const cpu = cpuTime(server.pid);
  const begin = performance.now();
  const moved = await transfer(server, round);
  const seconds = (performance.now() - begin) / 1e3;
  if (moved !== count) throw new Error(`${server.origin} moved ${moved} of ${count} ${items}`);
  return {
    perSecond: count / seconds,
    cpu: ((cpuTime(server.pid) - cpu) / count) * 1e6,
    growth: (memoryUse(server.pid)?.peak ?? Number.NaN) - memory,
  };
}

/** Imports lines of JSON; resolves to the number of created items in the report. */
export async function importLines(url: string, lines: Iterable<string>): Promise<number> {
  const headers = { 'content-type': NDJSON, prefer: 'return=minimal' };
  const sent = request(url, { method: 'POST', headers });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  await pipeline(pieces(lines), sent);
  let text = '';
  for await (const chunk of (await answered)[0].setEncoding('utf8')) text += chunk;
  return Number((JSON.parse(text) as { readonly created: number }).created);
}

function* pieces(lines: Iterable<string>): Generator<string> {
  let text = '';
  for (const line of lines) {
    text += line;
    if (text.length < PIECE) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Reads an export; resolves to the number of its lines. */
export async function exportedLines(url: string): Promise<number> {
  const sent = request(url, { headers: { accept: NDJSON } });
  sent.end();
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  let count = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) count++;
  }
  return count;
}
