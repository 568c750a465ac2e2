import type { HttpRequest } from '../load/load.ts';
import { costFindings, costOf, costTable, inTurn, type Rounds, type SendingRound } from '../measure/cost.ts';
import type { Row } from '../row.ts';
import { eventBody, PUBLISHES, type SendingServer, startSenders } from '../servers/sending.ts';
import { Workbench } from '../workbench.ts';

const TENANTS = 100;
/** Events of a request with many. */
const MANY = 100;
const BODIES = Array.from({ length: 1_000 }, (_, i) => eventBody(`t${i % TENANTS}`, i));

const requestOf = (body: string, contentType: string): HttpRequest => ({
  method: 'POST',
  path: '/events',
  headers: { ...PUBLISHES, 'content-type': contentType },
  body,
});

interface Kind {
  readonly title: string;
  readonly events: number;
  readonly connections: number;
  readonly requests: readonly HttpRequest[];
}

const KINDS: readonly Kind[] = [
  {
    title: 'one a request',
    events: 1,
    connections: 64,
    requests: BODIES.map((body) => requestOf(body, 'application/json')),
  },
  {
    title: `${MANY} a request`,
    events: MANY,
    connections: 8,
    requests: Array.from({ length: BODIES.length / MANY }, (_, i) =>
      requestOf(BODIES.slice(i * MANY, (i + 1) * MANY).join('\n'), 'application/x-ndjson'),
    ),
  },
];

export const publish: Row = {
  name: 'publish',
  title: 'Webhooks out: events published',
  about:
    `POST \`/events\` with a token, events of ${BODIES[0]?.length} bytes of ${TENANTS} tenants with one endpoint each; one event a request on 64 connections, and ${MANY} as NDJSON on 8. ` +
    'The services store and do not send; each kind begins with empty tables. The peers are a `node:http` service on PostgreSQL whose transaction stores the events and a job of pg-boss or graphile-worker for each endpoint that a table names. ' +
    'Portico on SQLite is compared with the same peers. Per CPU second counts the service and its PostgreSQL server.',
  async run(bench) {
    const measured: (readonly [Kind, Rounds<SendingRound>])[] = [];
    for (const kind of KINDS) measured.push([kind, await measure(bench, kind)]);
    return {
      tables: measured.map(([{ title }, rounds]) => costTable(title, ['event', 'events'], rounds)),
      findings: measured.flatMap(([{ title }, rounds]) => costFindings(title, rounds)),
      plots: measured.map(([{ title, events }, rounds]) => ({
        kind: 'bars',
        file: `publish-${events}`,
        title: `Events published per second, ${title}`,
        unit: 'events/s',
        bars: [...rounds].map(([label, all]) => ({
          label,
          values: all.map(({ count, seconds }) => count / seconds),
        })),
      })),
      notes: [],
    };
  },
};

async function measure(bench: Workbench, kind: Kind): Promise<Rounds<SendingRound>> {
  // Ends its servers, so that each kind begins with empty tables, however many events a service stored of the other.
  await using own = new Workbench({ ...bench, tool: bench.loadTool });
  const tenants = [{ name: 't', count: TENANTS, endpoints: 1 }];
  const servers = await startSenders(own, { origin: 'http://127.0.0.1:9' }, tenants, { sends: false });
  for (const server of servers) await load(own, server, kind, bench.pace.warmUp);
  return await inTurn(own, servers, kind.title, bench.pace.rounds, (server) =>
    load(own, server, kind, bench.pace.seconds),
  );
}

async function load(
  bench: Workbench,
  server: SendingServer,
  { events, connections, requests }: Kind,
  seconds: number,
): Promise<SendingRound> {
  const { origin } = server.server;
  const before = await server.stored();
  const { result, ...cost } = await costOf(server, () =>
    bench.load({ origin, requests, connections, seconds }),
  );
  if (result.failed > 0 || result.requests === 0)
    throw new Error(`${server.label}: ${result.failed} of ${result.requests} requests failed`);
  const count = result.requests * events;
  const stored = (await server.stored()) - before;
  if (stored < count) throw new Error(`${server.label} stored ${stored} of ${count} jobs`);
  return { count, seconds: result.requests / result.perSecond, ...cost };
}
