import { compare, contendersOf } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { BARE, startBare } from '../servers/bare.ts';
import { startUsersServers, userRequests } from '../servers/rest.ts';

const USERS = 1_000;
const requests = userRequests(USERS);

export const restUser: Row = {
  name: 'rest-user',
  title: 'REST: one user by id',
  about: `GET \`/users/<id>\` with ${USERS} ids in turn, users on disk in SQLite, 64 connections.`,
  async run(bench) {
    const servers = await startUsersServers(bench, USERS);
    const answer = await checkSameAnswers(servers, requests.slice(0, 20));
    const all = { ...servers, [BARE]: await startBare(bench, answer) };
    const contenders = contendersOf(all, requests);
    const measured = await compare(bench, contenders, { connections: 64 });
    const targets = { rate: { Express: 1.7, [BARE]: 0.75 }, p99: 1 };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
