import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { BARE, startBare } from '../servers/bare.ts';
import { startUsersServers } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';

const USERS = 100;
const requests: readonly HttpRequest[] = [{ method: 'GET', path: '/users' }];

export const restList: Row = {
  name: 'rest-list',
  title: `REST: the list of ${USERS} users`,
  about: `GET \`/users\`, ${USERS} users on disk in SQLite, 64 connections.`,
  async run(bench) {
    const servers = await startUsersServers(bench, USERS);
    const answer = await checkSameAnswers(servers, requests);
    const bare = bench.pace.quick ? {} : { [BARE]: await startBare(bench, answer) };
    const all: Readonly<Record<string, Server>> = { ...servers, ...bare };
    const contenders = contendersOf(all, requests);
    const measured = await compare(bench, contenders, { connections: 64 });
    const targets = { rate: { Express: 3, Fastify: 3 }, p99: 1 };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
