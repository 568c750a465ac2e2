import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onCores } from '../machine/cores.ts';
import { cpuTime, memoryUse } from '../machine/process-use.ts';
import { grouped, range } from '../measure/figures.ts';
import { median, percentile, ratio } from '../measure/statistics.ts';
import type { Row } from '../row.ts';
import { startPeer } from '../servers/peer.ts';
import { startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

const SUBSCRIBERS = 2_000;
const PEER = 'Yoga with graphql-ws';

interface Round {
  /** Events that subscribers received per second, one message each. */
  readonly perSecond: number;
  /** Time until the last subscriber received an event, in milliseconds. */
  readonly last: number;
  readonly p99: number;
  /** CPU time of the server per message, in microseconds. */
  readonly cpu: number;
  readonly memory: number;
}

export const subscriptions: Row = {
  name: 'subscriptions',
  title: `GraphQL: an event to ${SUBSCRIBERS.toLocaleString('en-US')} subscribers`,
  about:
    `\`subscription { userCreated { id name email } }\` on ${SUBSCRIBERS} WebSockets (\`graphql-transport-ws\`), then one \`createUser\` after the other, each as soon as every subscriber has the event before. ` +
    'The subscribers share the core of the load, so their reading is part of the time.',
  async run(bench) {
    const servers: readonly (readonly [string, Server])[] = [
      ['Portico', await startPortico(bench, 'graphql')],
      [PEER, await startPeer(bench, 'yoga-subscriptions')],
    ];
    const rounds = new Map<string, Round[]>(servers.map(([label]) => [label, []]));
    for (let round = 0; round < bench.pace.rounds; round++) {
      for (const [label, server] of round % 2 === 0 ? servers : servers.toReversed()) {
        bench.say(`round ${round + 1} of ${bench.pace.rounds}: ${label}`);
        rounds.get(label)?.push(await fanOut(bench, server));
      }
    }
    const values = (label: string, key: keyof Round) => (rounds.get(label) ?? []).map((one) => one[key]);
    const lines = servers.map(([label]) => [
      label,
      grouped(median(values(label, 'perSecond'))),
      range(values(label, 'perSecond')),
      median(values(label, 'last')).toFixed(1),
      median(values(label, 'p99')).toFixed(1),
      median(values(label, 'cpu')).toFixed(1),
      median(values(label, 'memory')).toFixed(0),
    ]);
    const compared = (key: keyof Round) => ratio(values('Portico', key), values(PEER, key));
    return {
      tables: [
        {
          head: ['', 'messages/s', 'lowest-highest', 'last one p50 ms', 'p99 ms', 'CPU us/message', 'MB'],
          lines,
        },
      ],
      findings: [
        { what: `Portico / ${PEER}`, unit: 'x', ...compared('perSecond'), target: { atLeast: 1 } },
        {
          what: `CPU per message of Portico / ${PEER}`,
          unit: 'x',
          ...compared('cpu'),
          target: { atMost: 1 },
        },
      ],
      plots: [
        {
          kind: 'bars',
          file: this.name,
          title: this.title,
          unit: 'messages/s',
          bars: servers.map(([label]) => ({ label, values: values(label, 'perSecond') })),
        },
      ],
      notes: [],
    };
  },
};

async function fanOut({ cores, node, pace }: Workbench, server: Server): Promise<Round> {
  const script = join(import.meta.dirname, '../load/subscribers.ts');
  const args = [script, server.origin, String(SUBSCRIBERS), String(pace.seconds)];
  const [program = '', ...rest] = [...onCores(cores.load), node, ...args];
  const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  const kill = () => child.kill('SIGKILL');
  process.prependOnceListener('exit', kill);
  const exit = once(child, 'exit');
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  if ((await lines.next()).value !== 'ready') throw new Error('the subscribers did not start');
  const before = cpuTime(server.pid);
  child.stdin.end('go\n');
  const times = JSON.parse((await lines.next()).value ?? '[]') as readonly number[];
  const cpu = cpuTime(server.pid) - before;
  const memory = memoryUse(server.pid)?.now ?? Number.NaN;
  await exit;
  process.off('exit', kill);
  const total = times.reduce((sum, time) => sum + time, 0);
  const messages = times.length * SUBSCRIBERS;
  return {
    perSecond: (messages / total) * 1_000,
    last: median(times),
    p99: percentile(times, 99),
    cpu: (cpu / messages) * 1e6,
    memory,
  };
}
