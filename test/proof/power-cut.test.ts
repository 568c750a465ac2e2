import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutStrace } from '../support/broken-machine.ts';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { control } from '../support/source-copy.ts';
import { crashStates } from './power-cut/crash-states.ts';
import { type Life, record } from './power-cut/recording.ts';
import type { Step } from './power-cut/trace.ts';

// PORTICO_PROOF_STATES: how many crash states.
const STATES = proofCount('PORTICO_PROOF_STATES', 100, 20);
const SEED = proofSeed();
const options = { skip: withoutStrace(), timeout: 300_000 + STATES * 5_000 };

/** From an empty folder, past a clean stop and a kill. */
const LIVES: readonly Life[] = [
  { writes: 400, end: 'SIGTERM' },
  { writes: 100, end: 'SIGKILL' },
  { writes: 150, end: 'SIGTERM' },
];

/** In its second life no sync succeeds any more until the process has ended; the next one finds a disk that works. */
function failingLives(firstFailure: number): readonly Life[] {
  return [
    { writes: 100, end: 'SIGTERM' },
    { writes: 300, end: 'failure', inject: `fsync,fdatasync:error=EIO:when=${firstFailure}+` },
    { writes: 60, end: 'SIGKILL' },
    { writes: 30, end: 'SIGTERM' },
  ];
}

const isLoss = (problem: string) => problem.includes('lost: ');

const isDatabase = ({ call }: Step) => 'path' in call && call.path.endsWith('.db');

test(`no power cut loses what was acknowledged (${STATES} states)`, options, async (t) => {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  const random = seededRandom(SEED);
  const recording = await record(LIVES, random);
  const { steps, lives, history } = recording;
  const kinds = lives[0]?.map((step) =>
    isDatabase(step) && step.call.kind === 'sync' ? 'fold' : step.call.kind,
  );
  assert.match(String(kinds), /reply.*fold.*reply/, 'the WAL is checkpointed while writes go on');

  const { states, acknowledgements, problems } = await crashStates(recording, STATES, random);
  t.diagnostic(
    `${history.acknowledged} writes in ${steps.length} steps; ${states} states, ` +
      `${acknowledgements} acknowledgements looked for`,
  );
  assert.deepEqual(problems, []);
});

control('without a sync at every commit, power cuts lose what was acknowledged', {
  ...options,
  edits: [
    {
      file: 'src/sql/sqlite/connection.ts',
      from: 'PRAGMA synchronous=FULL',
      to: 'PRAGMA synchronous=NORMAL',
    },
  ],
  async find(main, t) {
    const random = seededRandom(SEED);
    const recording = await record([{ writes: 100, end: 'SIGTERM' }], random, main);
    const { states, problems } = await crashStates(recording, 50, random, isLoss);
    t.diagnostic(`after ${states} states something was lost`);
    assert.ok(problems.some(isLoss));
  },
});

test('a power cut after syncs have failed loses nothing either', options, async (t) => {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  const random = seededRandom(SEED);
  const recording = await record(failingLives(4 + random.below(15)), random);
  const { problems } = await crashStates(recording, Math.ceil(STATES / 2), random);
  assert.deepEqual(problems, []);
});

test('after one failed sync the log stays as it is, though later ones would succeed', options, async () => {
  const random = seededRandom(SEED);
  // The start syncs some twenty times, for the tables of relations too.
  const inject = `fsync,fdatasync:error=EIO:when=${30 + random.below(15)}`;
  const { steps } = await record([{ writes: 300, end: 'failure', inject }], random);
  const failure = steps.findIndex(({ call }) => call.kind === 'sync' && call.failed);
  const after = steps.slice(failure);
  assert.ok(failure > 0);
  assert.ok(!after.some(isDatabase), 'it is not checkpointed any more');
  assert.ok(!after.some(({ call }) => call.kind === 'unlink'), 'it is not deleted');
});

control('a log that is built on as the system shows it loses what was acknowledged', {
  ...options,
  edits: [
    { file: 'src/sql/sqlite/open.ts', from: 'rewriteWal(migrating);', to: '' },
    { file: 'src/sql/sqlite-writer/write-loop.ts', from: 'checkpointer.checkpoint();', to: '' },
  ],
  async find(main, t) {
    const random = seededRandom(SEED);
    const recording = await record(failingLives(4 + random.below(15)), random, main);
    const { states, problems } = await crashStates(recording, 100, random, isLoss);
    t.diagnostic(`after ${states} states something was lost`);
    assert.ok(problems.some(isLoss));
  },
});
