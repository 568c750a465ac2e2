import type { HttpRequest, Load, LoadResult } from '../load/load.ts';
import { coreTime, cpuTime, memoryUse, resetPeak } from '../machine/process-use.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

export interface Contender {
  readonly label: string;
  readonly server: Server;
  readonly requests: readonly HttpRequest[];
  /**
   * Called after each load of this contender. The next load begins when it resolves, because a server that is
   * still working would slow the others.
   */
  settle?(load: LoadResult): Promise<void>;
}

export interface Measured {
  readonly label: string;
  readonly rounds: readonly Round[];
}

export interface Round extends LoadResult {
  /** CPU time of the server's process per request, in microseconds. */
  readonly cpu: number;
  /** Peak memory of the server's process in megabytes; NaN if unknown. */
  readonly memory: number;
  /** Share of the servers' core that other programs used meanwhile, in percent; NaN if unknown. */
  readonly disturbed: number;
  /** p99 under the paced load in milliseconds; NaN if not measured. */
  readonly pacedP99: number;
}

/**
 * Pause of a connection before each request of the paced load, in milliseconds. 64 connections then send at
 * most some 18,000 requests a second, so every server is idle part of the time. On a saturated machine, p99
 * measures the scheduler, and is longer for a server that leaves the load generator less CPU time.
 */
const PAUSE = 3;

/**
 * Nearly equal figures need many short rounds to be told apart, and unbound servers vary more than bound
 * ones. In total they take as long as other rows.
 */
export const MANY_ROUNDS = { rounds: 13, seconds: 2 } as const;

export interface CompareOptions {
  readonly connections: number;
  /** Length of a round in seconds. Default: that of the pace. */
  readonly seconds?: number;
  /** Number of rounds. Default: that of the pace. */
  readonly rounds?: number;
}

/**
 * Loads the contenders one at a time, for several rounds, every second round in reverse order, so that
 * changes on the machine affect all of them alike. Rejects if a reply is unsuccessful.
 */
export async function compare(
  bench: Workbench,
  contenders: readonly Contender[],
  { connections, seconds = bench.pace.seconds, rounds = bench.pace.rounds }: CompareOptions,
): Promise<readonly Measured[]> {
  const { warmUp } = bench.pace;
  for (const contender of contenders) {
    bench.say(`warming up ${contender.label}`);
    await loadOnce(bench, contender, { connections, seconds: warmUp });
  }
  const found = new Map<string, Round[]>(contenders.map(({ label }) => [label, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
      const { label } = contender;
      bench.say(`round ${round + 1} of ${rounds}: ${label}`);
      const measured = await loadOnce(bench, contender, { connections, seconds });
      if (measured.requests === 0) throw new Error(`${label} answered nothing within ${seconds} s`);
      const paced = await pacedP99(bench, contender, { connections, seconds });
      found.get(label)?.push({ ...measured, pacedP99: paced });
    }
  }
  return [...found].map(([label, rounds]) => ({ label, rounds }));
}

/** The servers as contenders that all get the same requests, by label. */
export function contendersOf(
  servers: Readonly<Record<string, Server>>,
  requests: readonly HttpRequest[],
): readonly Contender[] {
  return Object.entries(servers).map(([label, server]) => ({ label, server, requests }));
}

/** One figure from each round. */
export function valuesOf({ rounds }: Measured, key: keyof Round): readonly number[] {
  return rounds.map((round) => round[key]);
}

type Timing = Pick<Load, 'connections' | 'seconds' | 'pause'>;

async function pacedP99(bench: Workbench, contender: Contender, timing: Timing): Promise<number> {
  if (bench.loadTool !== 'wrk') return Number.NaN;
  // wrk accepts only whole seconds.
  const seconds = Math.max(1, Math.round(timing.seconds / 2));
  return (await loadOnce(bench, contender, { ...timing, seconds, pause: PAUSE })).p99;
}

async function loadOnce(
  bench: Workbench,
  { label, server, requests, settle }: Contender,
  timing: Timing,
): Promise<Omit<Round, 'pacedP99'>> {
  resetPeak(server.pid);
  const core = bench.cores.server;
  const before = { own: cpuTime(server.pid), all: coreTime(core), at: performance.now() };
  const result = await bench.load({ origin: server.origin, requests, ...timing });
  const elapsed = (performance.now() - before.at) / 1e3;
  const own = cpuTime(server.pid) - before.own;
  const cpu = (own / result.requests) * 1e6;
  const others = coreTime(core) - before.all - own;
  const disturbed = Math.max(0, (others / elapsed) * 100);
  const memory = memoryUse(server.pid)?.peak ?? Number.NaN;
  server.trimLog();
  if (result.failed > 0) {
    throw new Error(`${label}: ${result.failed} of ${result.requests} requests failed`);
  }
  await settle?.(result);
  return { ...result, cpu, memory, disturbed };
}
