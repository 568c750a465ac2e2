import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf } from '../measure/compare.ts';
import { p99Findings, rateFinding, rateTable, ratioTable } from '../measure/comparison.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { disturbance, ratePlot } from '../measure/summary.ts';
import type { Finding, Row } from '../row.ts';
import { startDatabaseServer } from '../servers/database-server.ts';
import { startPeer } from '../servers/peer.ts';
import { pgbench } from '../servers/pgbench.ts';
import { startPortico } from '../servers/portico.ts';
import { userRequests } from '../servers/rest.ts';

const USERS = 1_000;
const creates: readonly HttpRequest[] = Array.from({ length: 100 }, (_, i) => ({
  method: 'POST',
  path: '/users',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: `Grace Hopper ${i}`, email: `grace${i}@example.com` }),
}));
const reads = userRequests(USERS);
const INSERT = `INSERT INTO users (name, email) VALUES ('Grace Hopper', 'grace@example.com');`;
const SELECT = `\\set id random(1, ${USERS})\nSELECT id, name, email FROM users WHERE id = :id;`;

export const postgres: Row = {
  name: 'postgres',
  title: 'PostgreSQL: durable creates, and reads',
  about:
    'The REST door with `DATABASE_URL=postgres://...`, 64 connections. PostgreSQL runs on the same machine with `fsync=on` and may use all cores. ' +
    'The peer is Fastify with a pool of 10 connections of the same driver (pg), named statements, one statement per ' +
    'request. pgbench (64 clients, prepared statements, no HTTP) shows the limit of the server.',
  async run(bench) {
    const server = await startDatabaseServer(bench);
    const urls = { portico: await server.createDatabase(), peer: await server.createDatabase() };
    const servers = {
      Portico: await startPortico(bench, 'rest', { env: { DATABASE_URL: urls.portico } }),
      'Fastify + pg': await startPeer(bench, 'fastify-postgres', { env: { DATABASE_URL: urls.peer } }),
    };
    for (const url of Object.values(urls)) {
      await server.sql(
        `INSERT INTO users (name, email) SELECT 'User ' || i, 'user' || i || '@example.com' FROM generate_series(1, ${USERS}) i`,
        url,
      );
    }
    await checkSameAnswers(servers, [...reads.slice(0, 5), ...creates.slice(0, 1)]);
    const contend = (requests: readonly HttpRequest[]) =>
      compare(bench, contendersOf(servers, requests), { connections: 64 });
    const created = await contend(creates);
    const read = await contend(reads);
    const ceiling = {
      creates: await pgbench(bench, urls.peer, INSERT),
      reads: await pgbench(bench, urls.peer, SELECT),
    };
    const notes =
      ceiling.creates === undefined
        ? ['pgbench is not installed, so the ceiling is not shown.']
        : [
            `pgbench, one INSERT per transaction: ${ceiling.creates.toFixed(0)}/s; one SELECT: ${ceiling.reads?.toFixed(0)}/s.`,
          ];
    const [creating, ...creatingPeers] = created;
    const [reading, ...readingPeers] = read;
    if (creating === undefined || reading === undefined) throw new Error('nothing was measured');
    return {
      tables: [
        rateTable(created, 'creates'),
        ratioTable(creating, creatingPeers, 'creates: Portico'),
        rateTable(read, 'reads'),
        ratioTable(reading, readingPeers, 'reads: Portico'),
      ],
      findings: [
        ...creatingPeers.map((peer) => titled('creates', rateFinding(creating, peer, { atLeast: 4 }))),
        ...p99Findings(creating, creatingPeers, 1).map((finding) => titled('creates', finding)),
        ...p99Findings(reading, readingPeers, 1).map((finding) => titled('reads', finding)),
      ],
      plots: [
        ratePlot(created, 'postgres-creates', 'PostgreSQL: durable creates'),
        ratePlot(read, 'postgres-reads', 'PostgreSQL: reads'),
      ],
      notes: [...disturbance([...created, ...read]), ...notes],
    };
  },
};

function titled(title: string, finding: Finding): Finding {
  return { ...finding, what: `${title}: ${finding.what}` };
}
