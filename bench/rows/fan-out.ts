import { Receiver } from '../load/receiver.ts';
import { costFindings, costOf, costTable, inTurn, type Rounds, type SendingRound } from '../measure/cost.ts';
import type { Row } from '../row.ts';
import { eventBody, type SendingServer, startSenders } from '../servers/sending.ts';

/** Endpoints of the tenant of an event, and deliveries of a round. */
const FANS = [
  { endpoints: 1, deliveries: 5_000 },
  { endpoints: 10, deliveries: 10_000 },
  { endpoints: 100, deliveries: 15_000 },
] as const;
/** A quick round, and the warm-up, have this part of them. */
const PART = 1 / 5;
/** Events that are being published at a time. */
const AT_ONCE = 16;

export const fanOut: Row = {
  name: 'fan-out',
  title: 'Webhooks out: an event to 1, 10 and 100 endpoints',
  about:
    `Events of a tenant with 1, 10 or 100 endpoints are published by POST \`/events\`, ${AT_ONCE} at a time, and sent at once: 5,000, 10,000 or 15,000 deliveries a round. ` +
    'The time is that from the first publication to the last arrival; every event must arrive at every endpoint. The receiver, one process, answers 204. ' +
    'The peers sign by Standard Webhooks and post with undici, 64 at a time. Portico also records each attempt, takes turns among endpoints, and looks at what has become of an endpoint.',
  async run(bench) {
    const receiver = bench.use(await Receiver.open());
    const tenants = FANS.map(({ endpoints }) => ({ name: `t${endpoints}-`, count: 1, endpoints }));
    const servers = await startSenders(bench, receiver, tenants);
    const measured: (readonly [title: string, Rounds<SendingRound>])[] = [];
    let n = 0;
    const send = async (server: SendingServer, endpoints: number, count: number): Promise<SendingRound> => {
      const bodies = Array.from({ length: Math.ceil(count / endpoints) }, () =>
        eventBody(`t${endpoints}-0`, n++),
      );
      if (endpoints === 1) receiver.begin(server.probe.path, server.probe.secret);
      else receiver.begin();
      const begin = performance.now();
      const { result, ...cost } = await costOf(server, async () => {
        const events = await server.publisher.all(bodies, endpoints, AT_ONCE);
        return receiver.allOf(
          events.map(({ id }) => id),
          endpoints,
        );
      });
      const last = [...result.values()].flat().reduce((one, other) => Math.max(one, other));
      return { count: bodies.length * endpoints, seconds: (last - begin) / 1_000, ...cost };
    };
    for (const { endpoints, deliveries } of FANS) {
      const title = endpoints === 1 ? '1 endpoint' : `${endpoints} endpoints`;
      for (const server of servers) await send(server, endpoints, deliveries * PART);
      const rounds = await inTurn(bench, servers, title, bench.pace.rounds, (server) =>
        send(server, endpoints, bench.pace.quick ? deliveries * PART : deliveries),
      );
      measured.push([title, rounds]);
    }
    return {
      tables: measured.map(([title, rounds]) => costTable(title, ['delivery', 'deliveries'], rounds)),
      findings: measured.flatMap(([title, rounds]) => costFindings(title, rounds)),
      plots: measured.map(([title, rounds]) => ({
        kind: 'bars',
        file: `fan-out-${title.split(' ', 1)[0]}`,
        title: `Deliveries per second, ${title}`,
        unit: 'deliveries/s',
        bars: [...rounds].map(([label, all]) => ({
          label,
          values: all.map(({ count, seconds }) => count / seconds),
        })),
      })),
      notes: [],
    };
  },
};
