import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { copySource } from '../support/source-copy.ts';
import { withoutStrace } from '../support/strace.ts';
import { crashStates } from './power-cut/crash-states.ts';
import { type Life, record } from './power-cut/recording.ts';

// PORTICO_PROOF_STATES: how many crash states; with many, give --test-timeout a longer time too.
const STATES = proofCount('PORTICO_PROOF_STATES', 300);
const SEED = proofSeed();
const TIMEOUT = 60_000 + STATES * 200;
const skip = withoutStrace();

/** From an empty folder, past a clean stop and a kill. */
const LIVES: readonly Life[] = [
  { writes: 350, end: 'SIGTERM' },
  { writes: 100, end: 'SIGKILL' },
  { writes: 150, end: 'SIGTERM' },
];

test(`no power cut loses what was acknowledged (${STATES} states)`, {
  skip,
  timeout: TIMEOUT,
}, async (t) => {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  const random = seededRandom(SEED);
  const recording = await record(LIVES, random);
  const { states, acknowledgements, problems } = await crashStates(recording, STATES, random);
  t.diagnostic(
    `${recording.history.acknowledged} writes in ${recording.steps.length} steps; ${states} states, ` +
      `${acknowledgements} acknowledgements looked for`,
  );
  assert.deepEqual(problems, []);
});

test('control: without a sync at every commit, power cuts lose what was acknowledged', {
  skip,
  timeout: TIMEOUT,
}, async (t) => {
  await using copy = await copySource([
    {
      file: 'database/sqlite/connection.ts',
      from: 'PRAGMA synchronous=FULL',
      to: 'PRAGMA synchronous=NORMAL',
    },
  ]);
  const random = seededRandom(SEED);
  const recording = await record([{ writes: 100, end: 'SIGTERM' }], random, copy.main);
  const { states, problems } = await crashStates(recording, 50, random);
  t.diagnostic(`${problems.length} of ${states} states had lost something`);
  assert.ok(problems.some((problem) => problem.includes('lost: ')));
});
