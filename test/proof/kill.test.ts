import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proofCount, proofSeed } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { control, earlyAcknowledgement } from '../support/source-copy.ts';
import { killFirstStart } from './kill/first-start.ts';
import { killRound } from './kill/round.ts';

// PORTICO_PROOF_KILLS: how many kills under load.
const KILLS = proofCount('PORTICO_PROOF_KILLS', 20);
const SEED = proofSeed();
/** So many more hit a process that is about to make its database. */
const FIRST_STARTS = Math.ceil(KILLS / 5);
/** Kills that one database sees. */
const ROUND = 40;
/** Databases under way at the same time. */
const TRACKS = 2;
const TIMEOUT = 300_000 + KILLS * 20_000;

/** Does `work` for each item, a few of them at the same time. */
async function inTracks<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const track = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: TRACKS }, track));
}

test(`${FIRST_STARTS} processes killed while they make their database leave one that opens`, {
  timeout: TIMEOUT,
}, async (t) => {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  const random = seededRandom(SEED);
  const found = { 'no table': 0, migrated: 0 };
  await inTracks(Array.from({ length: FIRST_STARTS }).fill(0), async () => {
    found[await killFirstStart(random)]++;
  });
  t.diagnostic(`${found['no table']} had no table yet, ${found.migrated} had them all`);
});

test(`nothing acknowledged is lost and nothing done is done again through ${KILLS} kills`, {
  timeout: TIMEOUT,
}, async (t) => {
  t.diagnostic(`PORTICO_PROOF_SEED=${SEED}`);
  const rounds: { readonly seed: number; readonly kills: number }[] = [];
  for (let left = KILLS; left > 0; left -= ROUND) {
    rounds.push({ seed: SEED + rounds.length, kills: Math.min(ROUND, left) });
  }
  await inTracks(rounds, async (round) => {
    const result = await killRound(round);
    t.diagnostic(
      `${round.kills} kills: ${result.acknowledged} acknowledged writes, ${result.deliveries} deliveries, ` +
        `${result.users} users; ${result.repeated} deliveries handled more than once`,
    );
  });
});

control('writes that are acknowledged before they are committed are found to be lost', {
  edits: [earlyAcknowledgement],
  timeout: TIMEOUT,
  find: (main) => assert.rejects(killRound({ seed: SEED, kills: 40, main }), /acknowledged and is lost/),
});
