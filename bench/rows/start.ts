import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRequest } from '../load/load.ts';
import { memoryUse } from '../machine/process-use.ts';
import { compare, valuesOf } from '../measure/compare.ts';
import { range } from '../measure/figures.ts';
import { ask } from '../measure/same-answers.ts';
import { median, ratio, spread } from '../measure/statistics.ts';
import type { Finding, Row } from '../row.ts';
import { BARE } from '../servers/bare.ts';
import { graphqlPost } from '../servers/graphql.ts';
import { startPeer } from '../servers/peer.ts';
import { ALL_DOORS, startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

const FIRST = graphqlPost('{ hello }');
const LOAD: readonly HttpRequest[] = [
  graphqlPost('query ($id: ID!) { user(id: $id) { id name email } }', { id: '1' }),
];
/** Servers whose memory is measured under load too; a quick run takes the first two. */
const LOADED = ['Portico', 'Mercurius + JIT', 'Yoga', 'Apollo', BARE];

type Starter = () => Promise<Server>;

interface Start {
  /** Time from the start of the process to the end of its first answer, in milliseconds. */
  readonly firstAnswer: number;
  readonly idle: number;
}

export const start: Row = {
  name: 'start',
  title: 'Start and memory',
  about:
    'Time from the start of the process to its first GraphQL answer, and its memory (RSS) one second later ' +
    'and under load (64 connections, one user by id). Portico opens all four doors and its database, and keeps ' +
    "compiled code in Node's compile cache; Mercurius is shown with such a cache as well.",
  async run(bench) {
    const starters = startersOf(bench);
    const starts = new Map<string, Start[]>(Object.keys(starters).map((label) => [label, []]));
    const rounds = bench.pace.quick ? 2 : 7;
    const settle = bench.pace.quick ? 300 : 1_000;
    // The first start of each only fills its caches.
    for (const starter of Object.values(starters)) await (await starter()).stop();
    for (let round = 0; round < rounds; round++) {
      for (const [label, starter] of Object.entries(starters)) {
        bench.say(`start ${round + 1} of ${rounds}: ${label}`);
        starts.get(label)?.push(await observe(starter, settle));
      }
    }
    const loaded = await memoryUnderLoad(bench, starters);
    const firstAnswers = (label: string) => (starts.get(label) ?? []).map((each) => each.firstAnswer);
    const idle = (label: string) => (starts.get(label) ?? []).map((each) => each.idle);
    const own = firstAnswers('Portico');
    const findings: Finding[] = [
      {
        what: 'Portico, four doors: first answer',
        value: median(own),
        spread: spread(own),
        unit: 'ms',
        target: { atMost: 200 },
      },
      {
        what: 'Portico, four doors: memory when idle',
        value: median(idle('Portico')),
        spread: spread(idle('Portico')),
        unit: 'MB',
        target: { atMost: 100 },
      },
      {
        what: 'first answer of Portico / Mercurius + JIT',
        unit: 'x',
        ...ratio(own, firstAnswers('Mercurius + JIT')),
        target: { atMost: 1 },
      },
    ];
    return {
      tables: [
        {
          head: ['', 'first answer ms', 'lowest-highest', 'idle MB', 'under load MB'],
          lines: [...starts.keys()].map((label) => [
            label,
            median(firstAnswers(label)).toFixed(0),
            range(firstAnswers(label)),
            median(idle(label)).toFixed(0),
            loaded.get(label)?.toFixed(0) ?? '',
          ]),
        },
      ],
      findings,
      plots: [
        {
          kind: 'bars',
          file: 'start',
          title: 'Start to first answer',
          unit: 'ms',
          bars: [...starts.keys()].map((label) => ({ label, values: firstAnswers(label) })),
        },
        {
          kind: 'bars',
          file: 'memory',
          title: 'Memory when idle',
          unit: 'MB',
          bars: [...starts.keys()].map((label) => ({ label, values: idle(label) })),
        },
      ],
      notes: [],
    };
  },
};

function startersOf(bench: Workbench): Readonly<Record<string, Starter>> {
  const folder = bench.folder();
  const peerCache = bench.folder();
  const env = { NODE_COMPILE_CACHE: bench.folder() };
  return {
    Portico: () => startPortico(bench, 'graphql', { folder, env, doors: ALL_DOORS }),
    'Portico, empty compile cache': () =>
      startPortico(bench, 'graphql', { env: { NODE_COMPILE_CACHE: bench.folder() }, doors: ALL_DOORS }),
    'Mercurius + JIT': () => startPeer(bench, 'mercurius'),
    'Mercurius + JIT, with a compile cache': () =>
      startPeer(bench, 'mercurius', { env: { NODE_COMPILE_CACHE: peerCache } }),
    Yoga: () => startPeer(bench, 'yoga'),
    Apollo: () => startPeer(bench, 'apollo-fastify'),
    [BARE]: () =>
      bench.start({
        command: [bench.node, join(import.meta.dirname, '../peers/hello.ts')],
        env: (port) => ({ PORT: String(port) }),
      }),
  };
}

/** Peak memory of a process under load, in megabytes, by label. */
async function memoryUnderLoad(
  bench: Workbench,
  starters: Readonly<Record<string, Starter>>,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const label of LOADED.slice(0, bench.pace.quick ? 2 : undefined)) {
    const server = await starters[label]?.();
    if (server === undefined) throw new Error(`there is no ${label}`);
    const [measured] = await compare(bench, [{ label, server, requests: LOAD }], { connections: 64 });
    if (measured !== undefined) found.set(label, Math.max(...valuesOf(measured, 'memory')));
    await server.stop();
  }
  return found;
}

/** Starts a server, sends one request, waits, reads its memory and stops it. */
async function observe(starter: Starter, settle: number): Promise<Start> {
  const server = await starter();
  const asked = performance.now();
  const { status, text } = await ask(server, FIRST);
  if (status !== 200 || !text.includes('Hello')) throw new Error(`the first answer was ${status}: ${text}`);
  const firstAnswer = server.listeningAfter + performance.now() - asked;
  await delay(settle);
  const idle = memoryUse(server.pid)?.now ?? Number.NaN;
  await server.stop();
  return { firstAnswer, idle };
}
