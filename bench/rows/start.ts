import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRequest } from '../load/load.ts';
import { memoryUse } from '../machine/process-use.ts';
import { compare, valuesOf } from '../measure/compare.ts';
import { range } from '../measure/figures.ts';
import { ask } from '../measure/same-answers.ts';
import { median, ratio } from '../measure/statistics.ts';
import type { Finding, Row } from '../row.ts';
import { BARE } from '../servers/bare.ts';
import { graphqlPost } from '../servers/graphql.ts';
import { startPeer } from '../servers/peer.ts';
import { ALL_DOORS, buildPackage, startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

const FIRST = graphqlPost('{ hello }');
const LOAD: readonly HttpRequest[] = [
  graphqlPost('query ($id: ID!) { user(id: $id) { id name email } }', { id: '1' }),
];
/**
 * The built package, with a compile cache filled by earlier starts, and without one, as in a new container.
 */
const WARM = 'Portico';
const COLD = 'Portico, no compile cache';
const BARE_PROGRAM =
  "import { createServer } from 'node:http'; createServer((_, reply) => reply.end('Hello')).listen(process.env.PORT, '127.0.0.1')";
/** Servers whose memory is also measured under load; a quick run uses the first two. */
const LOADED = [WARM, 'Mercurius + JIT', 'Yoga', 'Apollo', BARE];

type Starter = () => Promise<Server>;

interface Start {
  /** Time from the start of the process to the end of its first answer, in milliseconds. */
  readonly firstAnswer: number;
  /** Memory after its first answer, in megabytes. */
  readonly atFirst: number;
  readonly idle: number;
}

export const start: Row = {
  name: 'start',
  title: 'Start and memory',
  about:
    'Time from the start of the process to its first GraphQL answer, its memory (RSS) then, one second later ' +
    'and under load (64 connections, one user by id). Portico is the built package with all four doors and its ' +
    'database; bare Node is `node -e` with a server of one line that imports node:http. Mercurius is shown with a compile cache as well.',
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
    const atFirst = (label: string) => (starts.get(label) ?? []).map((each) => each.atFirst);
    const againstBare = [WARM, COLD].flatMap((label): Finding[] => [
      {
        what: `${label}: first answer / bare Node`,
        unit: 'x',
        ...ratio(firstAnswers(label), firstAnswers(BARE)),
        target: { atMost: 3 },
      },
      {
        what: `${label}: memory at the first answer / bare Node`,
        unit: 'x',
        ...ratio(atFirst(label), atFirst(BARE)),
        target: { atMost: 1.6 },
      },
    ]);
    const findings: Finding[] = [
      ...againstBare,
      {
        what: 'first answer of Portico / Mercurius + JIT',
        unit: 'x',
        ...ratio(firstAnswers(WARM), firstAnswers('Mercurius + JIT')),
        target: { atMost: 1 },
      },
    ];
    return {
      tables: [
        {
          head: ['', 'first answer ms', 'lowest-highest', 'MB then', 'idle MB', 'under load MB'],
          lines: [...starts.keys()].map((label) => [
            label,
            median(firstAnswers(label)).toFixed(0),
            range(firstAnswers(label)),
            median(atFirst(label)).toFixed(0),
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
  const main = join(buildPackage(bench), 'bin/portico.js');
  const portico = (env: Readonly<Record<string, string>>) =>
    startPortico(bench, 'graphql', { folder, main, env, doors: ALL_DOORS });
  const cache = { NODE_COMPILE_CACHE: bench.folder() };
  return {
    [WARM]: () => portico(cache),
    [COLD]: () => portico({ NODE_DISABLE_COMPILE_CACHE: '1' }),
    'Mercurius + JIT': () => startPeer(bench, 'mercurius'),
    'Mercurius + JIT, with a compile cache': () =>
      startPeer(bench, 'mercurius', { env: { NODE_COMPILE_CACHE: peerCache } }),
    Yoga: () => startPeer(bench, 'yoga'),
    Apollo: () => startPeer(bench, 'apollo-fastify'),
    [BARE]: () =>
      bench.start({
        command: [bench.node, '-e', BARE_PROGRAM],
        env: (port) => ({ PORT: String(port) }),
      }),
  };
}

/** Peak memory of each process under load, in megabytes, by label. */
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
  const atFirst = memoryUse(server.pid)?.now ?? Number.NaN;
  await delay(settle);
  const idle = memoryUse(server.pid)?.now ?? Number.NaN;
  await server.stop();
  return { firstAnswer, atFirst, idle };
}
