import type { HttpRequest } from '../load/load.ts';
import { openLoopDuring } from '../load/open-loop.ts';
import { type Contender, compare, contendersOf } from '../measure/compare.ts';
import { range } from '../measure/figures.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { median, percentile, spread } from '../measure/statistics.ts';
import { summarise } from '../measure/summary.ts';
import type { Row, Table } from '../row.ts';
import { startUsersServers } from '../servers/rest.ts';
import type { Workbench } from '../workbench.ts';

const USERS = 100_000;
const CONNECTIONS = 4;
const requests: readonly HttpRequest[] = [{ method: 'GET', path: '/users' }];
const ONE: HttpRequest = { method: 'GET', path: '/users/1' };

export const restLongList: Row = {
  name: 'rest-long-list',
  title: `REST: the list of ${USERS.toLocaleString('en-US')} users`,
  about: `GET \`/users\`, ${USERS.toLocaleString('en-US')} users on disk in SQLite, ${CONNECTIONS} connections. Then the same again while another client sends \`GET /users/1\` a hundred times a second.`,
  async run(bench) {
    const servers = await startUsersServers(bench, USERS);
    await checkSameAnswers(servers, requests);
    const contenders = contendersOf(servers, requests);
    const measured = await compare(bench, contenders, {
      connections: CONNECTIONS,
      // On a busy machine, a list may take longer than a second.
      seconds: Math.max(2, bench.pace.seconds),
    });
    const targets = { rate: { Express: 3, Fastify: 3 } };
    const summary = summarise({ measured, targets, name: this.name, title: this.title });
    const others = new Map<string, readonly number[]>();
    for (const contender of contenders) others.set(contender.label, await concurrentP99s(bench, contender));
    const p99s = others.get('Portico') ?? [];
    return {
      ...summary,
      tables: [...summary.tables, concurrentTable(others)],
      findings: [
        ...summary.findings,
        {
          what: 'Portico: p99 of concurrent requests',
          value: median(p99s),
          spread: spread(p99s),
          unit: 'ms',
          target: { atMost: 20 },
        },
      ],
    };
  },
};

/** The p99 of `/users/1` during list reads, round by round. */
async function concurrentP99s(bench: Workbench, { label, server }: Contender): Promise<readonly number[]> {
  const p99s: number[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    bench.say(`concurrent requests, round ${round + 1} of ${bench.pace.rounds}: ${label}`);
    const { origin } = server;
    const { seconds } = bench.pace;
    const lists = bench.load({ origin, requests, connections: CONNECTIONS, seconds });
    p99s.push(percentile(await openLoopDuring({ origin, request: ONE }, lists), 99));
  }
  return p99s;
}

function concurrentTable(others: ReadonlyMap<string, readonly number[]>): Table {
  return {
    head: ['concurrent requests', 'p99 ms', 'lowest-highest'],
    lines: [...others].map(([label, p99s]) => [
      label,
      median(p99s).toFixed(1),
      range(p99s, (p99) => p99.toFixed(1)),
    ]),
  };
}
