import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPorticoUsers, startUsersPeer } from '../servers/rest.ts';

const requests: readonly HttpRequest[] = Array.from({ length: 100 }, (_, i) => ({
  method: 'POST',
  path: '/users',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: `Grace Hopper ${i}`, email: `grace${i}@example.com` }),
}));

export const restCreate: Row = {
  name: 'rest-create',
  title: 'REST: durable creates',
  about:
    'POST `/users` with 100 bodies in turn, 64 connections. Every answer means that the user is synced to the disk: ' +
    'SQLite with a write-ahead log and `synchronous=FULL` in all of them, one commit per request in the peers.',
  async run(bench) {
    const servers = {
      Portico: await startPorticoUsers(bench, 1),
      Express: await startUsersPeer(bench, 'express-users', 1),
      ...(bench.pace.quick
        ? {}
        : {
            Fastify: await startUsersPeer(bench, 'fastify-users', 1),
            'Portico, not bound': await startPorticoUsers(bench, 1, { onAllCores: true }),
          }),
    };
    await checkSameAnswers(servers, requests.slice(0, 1));
    const contenders = contendersOf(servers, requests);
    const measured = await compare(bench, contenders, { connections: 64 });
    return summarise({
      measured,
      targets: { rate: { Express: 10 }, p99: 1 },
      name: this.name,
      title: this.title,
    });
  },
};
