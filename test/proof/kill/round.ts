import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import { type Random, seededRandom } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { checkEffects, checkOrder, readEffects } from './effects.ts';
import { Ledger } from './ledger.ts';
import { runLoad } from './load.ts';
import { readStore, type StoredJob } from './store-reader.ts';

export interface RoundOptions {
  readonly seed: number;
  readonly kills: number;
  /** The program's script, when it is not the one of this folder. */
  readonly main?: string;
}

export interface RoundResult {
  readonly acknowledged: number;
  readonly deliveries: number;
  readonly users: number;
  /** Deliveries that were handled more than once because a kill came before their end was recorded. */
  readonly repeated: number;
}

const CONNECTIONS = 16;

/**
 * One database through many kills and one last run that ends by itself. After each kill the store is compared with
 * what the clients were told, and at the end with what the handlers did.
 */
export async function killRound({ seed, kills, main }: RoundOptions): Promise<RoundResult> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  const random = seededRandom(seed);
  const ledger = new Ledger();
  const done = new Map<number, StoredJob>();
  const doneBy = new Map<number, number>();
  let acknowledged = 0;
  /** How long the last whole start took, in milliseconds. */
  let startTime = 0;

  const start = (run: number) =>
    startPortico({
      cwd: folder.path,
      env: {
        INTERFACES: 'rest,webhook',
        LOG_LEVEL: 'info',
        CONFIG: join(import.meta.dirname, 'handlers.ts'),
        RUN: String(run),
      },
      ...(main !== undefined && { main }),
    });
  const load = (portico: PorticoProcess, run: number, onAcknowledged: (count: number) => void) =>
    runLoad({
      rest: portico.urls.rest ?? '',
      webhook: portico.urls.webhook ?? '',
      ledger,
      random,
      prefix: `${seed}-${run}`,
      connections: CONNECTIONS,
      onAcknowledged,
    });
  function audit(run: number): void {
    using store = readStore(file);
    ledger.reconcile(store.content());
    const jobs = store.jobs();
    checkJobs(jobs, ledger);
    for (const job of jobs) {
      const before = done.get(job.seq);
      if (before !== undefined) assert.deepEqual(job, before, 'what is done stays as it is');
      else if (job.status === 'done') {
        done.set(job.seq, job);
        doneBy.set(job.seq, run);
      }
    }
  }

  for (let run = 1; run <= kills; run++) {
    await using portico = start(run);
    if (run > 1 && random.chance(0.25)) {
      await delay(random.below(startTime));
      portico.child.kill('SIGKILL');
    } else {
      const began = performance.now();
      await portico.ready();
      startTime = performance.now() - began;
      acknowledged += await killUnderLoad(portico, random, (onAcknowledged) =>
        load(portico, run, onAcknowledged),
      );
    }
    assert.equal(await portico.exited(), 'SIGKILL', portico.stderr);
    audit(run);
  }

  const lastRun = kills + 1;
  await using last = start(lastRun);
  await last.ready();
  {
    using store = readStore(file);
    await waitFor('all deliveries to be handled', () => store.openJobs() === 0);
  }
  last.child.kill('SIGTERM');
  assert.equal(await last.exited(), 0, last.stderr);
  audit(lastRun);
  using store = readStore(file);
  store.checkIntegrity();
  const jobs = store.jobs();
  assert.ok(jobs.every(({ status }) => status === 'done'));
  const effects = readEffects(join(folder.path, 'effects.log'));
  checkEffects(jobs, effects, doneBy);
  checkOrder(jobs, effects, (token) => keyOf(ledger, token));
  const repeated = [...effects.values()].filter((attempts) => attempts.length > 1).length;
  return { acknowledged, deliveries: ledger.acknowledgedDeliveries, users: ledger.users, repeated };
}

/** Kills at a random moment, or in the very moment in which a client learns of an acknowledgement. */
async function killUnderLoad(
  { child }: PorticoProcess,
  random: Random,
  load: (onAcknowledged: (count: number) => void) => Promise<number>,
): Promise<number> {
  const kill = () => child.kill('SIGKILL');
  if (random.chance(0.5)) {
    const last = 1 + random.below(400);
    return await load((count) => {
      if (count === last) kill();
    });
  }
  const timer = setTimeout(kill, random.below(random.chance(0.1) ? 1_500 : 300));
  try {
    return await load(() => {});
  } finally {
    clearTimeout(timer);
    kill();
  }
}

/** Every delivery has the one job of its handler, or none if nothing handles it. */
function checkJobs(jobs: readonly StoredJob[], ledger: Ledger): void {
  const counts = new Map<string, number>();
  for (const { token } of jobs) counts.set(token, (counts.get(token) ?? 0) + 1);
  for (const [token, { event, known }] of ledger.deliveries) {
    const expected = known === 'acknowledged' && event !== 'nobody' ? 1 : 0;
    assert.equal(counts.get(token) ?? 0, expected, `jobs of ${token} (${event}, ${known})`);
  }
}

function keyOf(ledger: Ledger, token: string): string {
  const { data } = JSON.parse(ledger.deliveries.get(token)?.body ?? '{}') as { data?: { key?: unknown } };
  return String(data?.key);
}
