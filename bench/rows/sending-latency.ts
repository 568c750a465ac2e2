import { Receiver } from '../load/receiver.ts';
import { againstPeers, costOf, inTurn, type Rounds } from '../measure/cost.ts';
import { range } from '../measure/figures.ts';
import { median, percentile } from '../measure/statistics.ts';
import type { Row, Table } from '../row.ts';
import { eventBody, SENDERS, type SendingServer, startSenders } from '../servers/sending.ts';
import { Workbench } from '../workbench.ts';

/** Tenants; each has eight endpoints. */
const SIZES = { '64 endpoints': 8, '10,000 endpoints': 1_250 } as const;
type Size = keyof typeof SIZES;
const ENDPOINTS = 8;
/** Events per second. */
const RATE = 50;
const ROUNDS = 3;
const SECONDS = { full: 8, quick: 3 } as const;
/** Longer than that of other rows: at such a rate code gets hot slowly. */
const WARM_UP = 4;

/** Times in milliseconds, CPU time in seconds per second. */
interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly acceptedP99: number;
  readonly busy: number;
}

export const sendingLatency: Row = {
  name: 'sending-latency',
  title: 'Webhooks out: from the publication to the arrival',
  about:
    `${RATE} events a second, each for the ${ENDPOINTS} endpoints of one of 8 or 1,250 tenants in turn, at a fixed rate. The time is that from the reply to the publication until the event arrives at an endpoint; 0 if it arrives before the reply. ` +
    'All events must arrive at all endpoints. The services and peers are those of `fan-out`.',
  async run(bench) {
    const measured: (readonly [Size, Rounds<Latency>])[] = [];
    for (const size of Object.keys(SIZES) as Size[]) measured.push([size, await measure(bench, size)]);
    return {
      tables: measured.map(([size, rounds]) => tableOf(size, rounds)),
      findings: measured.flatMap(([size, rounds]) =>
        againstPeers(
          size,
          'p99',
          rounds,
          ({ p99 }) => p99,
          false,
          () => ({ atMost: 1 }),
        ),
      ),
      plots: measured.map(([size, rounds]) => ({
        kind: 'bars',
        file: `sending-latency-${SIZES[size] * ENDPOINTS}`,
        title: `p99 from the publication to the arrival, ${size}`,
        unit: 'ms',
        bars: [...rounds].map(([label, all]) => ({ label, values: all.map(({ p99 }) => p99) })),
      })),
      notes: [],
    };
  },
};

async function measure(bench: Workbench, size: Size): Promise<Rounds<Latency>> {
  const tenants = SIZES[size];
  // Ends its servers, so that those of the other size have the machine.
  await using own = new Workbench({ ...bench, tool: bench.loadTool });
  const receiver = own.use(await Receiver.open());
  const servers = await startSenders(own, receiver, [{ name: 't', count: tenants, endpoints: ENDPOINTS }]);
  const seconds = bench.pace.quick ? SECONDS.quick : SECONDS.full;
  let n = 0;
  const publish = async (server: SendingServer, time: number): Promise<Latency> => {
    const bodies = Array.from({ length: RATE * time }, () => eventBody(`t${n++ % tenants}`, n));
    receiver.begin();
    const { result, service, database } = await costOf(server, async () => {
      const events = await server.publisher.atRate(bodies, ENDPOINTS, RATE);
      return {
        events,
        times: await receiver.allOf(
          events.map(({ id }) => id),
          ENDPOINTS,
        ),
      };
    });
    const waits = result.events.flatMap(({ id, acceptedAt }) =>
      (result.times.get(id) ?? []).map((at) => Math.max(0, at - acceptedAt)),
    );
    return {
      p50: percentile(waits, 50),
      p99: percentile(waits, 99),
      max: percentile(waits, 100),
      acceptedP99: percentile(
        result.events.map(({ sentAt, acceptedAt }) => acceptedAt - sentAt),
        99,
      ),
      busy: (service + database) / time,
    };
  };
  for (const server of servers) await publish(server, WARM_UP);
  const rounds = bench.pace.quick ? 1 : ROUNDS;
  return await inTurn(own, servers, size, rounds, (server) => publish(server, seconds));
}

function tableOf(size: Size, rounds: Rounds<Latency>): Table {
  return {
    head: [size, 'p50 ms', 'p99 ms', 'lowest-highest', 'longest ms', 'accepted p99 ms', 'CPU ms/s'],
    lines: SENDERS.map((label) => {
      const all = rounds.get(label) ?? [];
      const middle = (figure: (round: Latency) => number) => median(all.map(figure));
      return [
        label,
        middle(({ p50 }) => p50).toFixed(1),
        middle(({ p99 }) => p99).toFixed(1),
        range(
          all.map(({ p99 }) => p99),
          (value) => value.toFixed(1),
        ),
        middle(({ max }) => max).toFixed(0),
        middle(({ acceptedP99 }) => acceptedP99).toFixed(1),
        middle(({ busy }) => busy * 1_000).toFixed(0),
      ];
    }),
  };
}
