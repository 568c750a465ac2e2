import { join } from 'node:path';
import type { HttpRequest, LoadResult } from '../load/load.ts';
import { openLoopDuring } from '../load/open-loop.ts';
import { hasTool } from '../machine/tools.ts';
import { range } from '../measure/figures.ts';
import { median, percentile, ratio } from '../measure/statistics.ts';
import type { Row } from '../row.ts';
import { fill, userRequests } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';
import { startTracedPortico } from '../servers/traced-portico.ts';
import type { Workbench } from '../workbench.ts';

const USERS = 1_000;
/** Delay of each sync, in milliseconds. */
const DELAY = 20;
const reads = userRequests(USERS);
const create: HttpRequest = {
  method: 'POST',
  path: '/users',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: 'Grace Hopper', email: 'grace@example.com' }),
};
const CREATES_AT_A_TIME = 5;

interface Sample {
  readonly gets: LoadResult;
  /** Latencies of the creates, in milliseconds. */
  readonly creates: readonly number[];
}

/** A closed loop of reads while users are created at a fixed rate. */
async function loadBoth(bench: Workbench, { origin }: Server, seconds: number): Promise<Sample> {
  const load = bench.load({ origin, requests: reads, connections: 8, seconds });
  const creates = await openLoopDuring({ origin, request: create, batch: CREATES_AT_A_TIME }, load);
  const gets = await load;
  if (gets.failed > 0 || gets.requests === 0)
    throw new Error(`${gets.failed} of ${gets.requests} reads failed`);
  return { gets, creates };
}

export const slowDisk: Row = {
  name: 'slow-disk',
  title: 'A slow disk',
  about:
    `Reads (GET \`/users/<id>\`, 8 connections) while ${CREATES_AT_A_TIME * 100} users a second are created, with each sync ` +
    `delayed by ${DELAY} ms by strace and with none delayed. Both run under strace, which traces syncs only.`,
  async run(bench) {
    if (!hasTool('strace', '-V')) throw new Error('This row needs strace (Debian package strace)');
    const servers = {
      'syncs as they are': await startTracedPortico(bench, undefined),
      [`syncs delayed by ${DELAY} ms`]: await startTracedPortico(bench, DELAY),
    };
    const samples = new Map<string, Sample[]>();
    for (const [label, server] of Object.entries(servers)) {
      fill(join(server.folder, 'portico.db'), USERS);
      samples.set(label, []);
      bench.say(`warming up: ${label}`);
      await loadBoth(bench, server, bench.pace.warmUp);
    }
    for (let round = 0; round < bench.pace.rounds; round++) {
      for (const [label, server] of Object.entries(servers)) {
        bench.say(`round ${round + 1} of ${bench.pace.rounds}: ${label}`);
        samples.get(label)?.push(await loadBoth(bench, server, bench.pace.seconds));
      }
    }
    const [plain = [], slow = []] = [...samples.values()];
    const createMedian = (all: readonly Sample[]) =>
      median(all.map(({ creates }) => percentile(creates, 50)));
    if (createMedian(slow) < DELAY)
      throw new Error('The syncs were not delayed: creates were faster than that');
    const p99s = (all: readonly Sample[]) => all.map(({ gets }) => gets.p99);
    return {
      tables: [
        {
          head: ['', 'GETs/s', 'GET p50 ms', 'GET p99 ms', 'lowest-highest', 'POST p50 ms', 'POST p99 ms'],
          lines: [...samples].map(([label, all]) => [
            label,
            median(all.map(({ gets }) => gets.perSecond)).toFixed(0),
            median(all.map(({ gets }) => gets.p50)).toFixed(2),
            median(p99s(all)).toFixed(2),
            range(p99s(all), (p99) => p99.toFixed(2)),
            createMedian(all).toFixed(1),
            median(all.map(({ creates }) => percentile(creates, 99))).toFixed(1),
          ]),
        },
      ],
      findings: [
        {
          what: 'GET p99, slow disk / fast disk',
          unit: 'x',
          ...ratio(p99s(slow), p99s(plain)),
          target: { atMost: 2 },
        },
      ],
      plots: [
        {
          kind: 'bars',
          file: this.name,
          title: 'p99 of reads while users are created',
          unit: 'ms',
          bars: [...samples].map(([label, all]) => ({ label, values: p99s(all) })),
        },
      ],
      notes: [],
    };
  },
};
