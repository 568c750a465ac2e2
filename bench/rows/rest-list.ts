import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf, type Measured } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { median, spread } from '../measure/statistics.ts';
import { summarise, type Targets } from '../measure/summary.ts';
import type { Finding, Row } from '../row.ts';
import { BARE, startBare } from '../servers/bare.ts';
import { startPorticoUsers, startUsersServers } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';

const CONNECTIONS = 64;
/** Minimum rate of lists of a page or more, relative to node:http and to Express. */
const TARGETS: Targets = { rate: { [BARE]: 0.4, Express: 5 } };
/** Maximum ratio of their p99 to their median. */
const MAX_P99 = 3;
const requests: readonly HttpRequest[] = [{ method: 'GET', path: '/users' }];

export const restList: Row = listRow('rest-list', 100, '', { rate: { Express: 3, Fastify: 3 }, p99: 1 });

/** As many users as fit in one page. */
export const restListPage: Row = listRow('rest-list-page', 1_000, ' The list is one page, 58 kB.', TARGETS);

/** A list that is sent in several pieces. */
export const restListPages: Row = listRow(
  'rest-list-pages',
  10_000,
  ' The list is ten pages, 617 kB.',
  TARGETS,
);

function listRow(name: string, users: number, more: string, targets: Targets): Row {
  const title = `REST: the list of ${users.toLocaleString('en-US')} users`;
  const isLong = targets === TARGETS;
  return {
    name,
    title,
    about: `GET \`/users\`, ${users.toLocaleString('en-US')} users on disk in SQLite, ${CONNECTIONS} connections.${more}`,
    async run(bench) {
      const servers = await startUsersServers(bench, users);
      const answer = await checkSameAnswers(servers, requests);
      const bare = bench.pace.quick && !isLong ? {} : { [BARE]: await startBare(bench, answer) };
      const env = { HTTP_FAST_PATH: 'false' };
      const slow = isLong ? { 'Portico, by Fastify': await startPorticoUsers(bench, users, { env }) } : {};
      const all: Readonly<Record<string, Server>> = { ...servers, ...slow, ...bare };
      const measured = await compare(bench, contendersOf(all, requests), { connections: CONNECTIONS });
      const summary = summarise({ measured, targets, name, title });
      const fairness = isLong
        ? measured.filter(({ label }) => label.startsWith('Portico')).map(evenness)
        : [];
      return { ...summary, findings: [...summary.findings, ...fairness] };
    },
  };
}

/** The ratio of the slowest replies to the median: a high one means that some starve. */
function evenness({ label, rounds }: Measured): Finding {
  const ratios = rounds.map(({ p50, p99 }) => p99 / p50);
  const target = { atMost: MAX_P99 };
  return { what: `${label}: p99 / median`, value: median(ratios), spread: spread(ratios), unit: 'x', target };
}
