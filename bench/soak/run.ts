import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Ledger } from '../../test/proof/kill/ledger.ts';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { seededRandom } from '../../test/support/random.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { audit, drained } from './audit.ts';
import { faultsFor, nextFault } from './faults.ts';
import { Installation } from './installation.ts';
import { runLoad } from './load.ts';
import type { FaultRecord, Outcome } from './outcome.ts';
import { Recorder } from './recorder.ts';
import { usagesOf } from './sampler.ts';
import type { Sample } from './samples.ts';
import { postgresStore, sqliteStore } from './store.ts';

export interface SoakOptions {
  readonly engine: 'sqlite' | 'postgres';
  /** URL of an empty PostgreSQL database; without it, the run starts its own server. */
  readonly url: string | undefined;
  readonly minutes: number;
  readonly rate: number;
  readonly seed: number;
  /** Ends the load early. */
  readonly signal: AbortSignal;
  say(line: string): void;
}

type Found = Omit<Outcome, 'command' | 'machine' | 'date'>;

const CONNECTIONS = 16;
const SAMPLES = 600;
/** Number of faults in a run, unless it is short. */
const FAULTS = 120;
/** Minimum time between two faults, in milliseconds. */
const SHORTEST = 7_000;

/** Runs the load and the faults for some minutes, then compares the store with the acknowledgements. */
export async function soak(options: SoakOptions): Promise<Found> {
  const { engine, minutes, rate, seed, say } = options;
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const file = join(folder, 'portico.db');
  const server =
    engine === 'postgres' && options.url === undefined
      ? cleanup.use(await startPostgres({ sync: true }))
      : undefined;
  const databaseUrl = options.url ?? (await server?.createDatabase()) ?? `sqlite:${file}`;
  const store = engine === 'sqlite' ? sqliteStore(file) : postgresStore(databaseUrl);
  const processes = engine === 'sqlite' ? 1 : 2;
  const installation = cleanup.use(await Installation.start({ folder, databaseUrl, processes }));

  const milliseconds = minutes * 60_000;
  const ending = new AbortController();
  const signal = AbortSignal.any([AbortSignal.timeout(milliseconds), options.signal, ending.signal]);
  const random = seededRandom(seed);
  const ledger = new Ledger();
  const recorder = new Recorder();
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  const problems: string[] = [];
  const next = () => installation.next();
  const load = runLoad({ next, ledger, recorder, random, connections: CONNECTIONS, rate, signal }).catch(
    (error: Error) => {
      problems.push(error.message);
      ending.abort();
    },
  );
  const [samples, faults] = await Promise.all([
    sample(installation, recorder, { signal, seconds, every: Math.max(1_000, milliseconds / SAMPLES), say }),
    makeFaults({ ...options, signal }, { installation, random, server }, { recorder, seconds }),
    load,
  ]);
  const lasted = seconds();
  say('the load has ended; waiting for open deliveries');
  problems.push(...(await drained(store)), ...(await installation.stop()));
  say('comparing');
  const found = await audit(store, ledger, join(folder, 'effects.log'));
  return {
    engine,
    seconds: lasted,
    samples,
    faults,
    ends: installation.ends,
    counts: recorder.counts,
    errors: recorder.errors,
    audit: { ...found, problems: [...problems, ...found.problems] },
  };
}

interface Sampling {
  readonly signal: AbortSignal;
  readonly every: number;
  seconds(): number;
  say(line: string): void;
}

async function sample(
  installation: Installation,
  recorder: Recorder,
  { signal, every, seconds, say }: Sampling,
): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const perMinute = Math.max(1, Math.round(60_000 / every));
  while (await slept(every, signal)) {
    const latest = { at: seconds(), ...recorder.take(), usages: usagesOf(installation.running) };
    samples.push(latest);
    if (samples.length % perMinute !== 0) continue;
    const memory = latest.usages.map(({ memoryMiB }) => `${memoryMiB.toFixed(0)} MiB`).join(', ');
    say(`${(latest.at / 60).toFixed(1)} min: ${latest.requests} requests in the last sample, ${memory}`);
  }
  return samples;
}

interface Watch {
  readonly recorder: Recorder;
  seconds(): number;
}

async function makeFaults(
  { engine, minutes, signal }: SoakOptions,
  context: {
    installation: Installation;
    random: ReturnType<typeof seededRandom>;
    server: PostgresServer | undefined;
  },
  { recorder, seconds }: Watch,
): Promise<readonly FaultRecord[]> {
  const possible = faultsFor(engine, context.server !== undefined);
  const every = Math.max(SHORTEST, (minutes * 60_000) / FAULTS);
  const total = Math.floor((minutes * 60_000) / every);
  const records: FaultRecord[] = [];
  while (await slept(every, signal)) {
    const fault = nextFault(possible, engine, records.length, total);
    if (fault === undefined) break;
    const at = seconds();
    await fault.run(context);
    const writes = acknowledged(recorder);
    const isBack = async () => {
      while (acknowledged(recorder) === writes) if (!(await slept(2, signal))) return false;
      return true;
    };
    const recoveredMs = (await isBack()) ? (seconds() - at) * 1_000 : Number.NaN;
    records.push({ name: fault.name, at, recoveredMs });
  }
  return records;
}

const WRITES = ['deliver', 'create', 'update', 'delete'];

function acknowledged({ counts }: Recorder): number {
  return WRITES.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0);
}

/** Resolves to whether the time passed without an abort. */
function slept(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return delay(milliseconds, undefined, { signal }).then(
    () => true,
    () => false,
  );
}
