import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { StoredJob } from './store-reader.ts';

/** One attempt of a handler, as the handler itself has noted it. */
interface Attempt {
  readonly attempt: number;
  readonly run: number;
  readonly ended: boolean;
  /** Where it stands in the file. */
  readonly begunAt: number;
  readonly endedAt: number;
}

/** The attempts by token, in the order in which they began. */
export type Effects = ReadonlyMap<string, readonly Attempt[]>;

export function readEffects(file: string): Effects {
  const found = new Map<string, Attempt[]>();
  if (!existsSync(file)) return found;
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const [mark, token, attempt, run] = line.split(' ');
    if (token === undefined) continue;
    const attempts = found.get(token) ?? [];
    found.set(token, attempts);
    if (mark === 'begin') {
      attempts.push({ attempt: Number(attempt), run: Number(run), ended: false, begunAt: at, endedAt: -1 });
    } else {
      const i = attempts.findLastIndex((one) => one.attempt === Number(attempt) && one.run === Number(run));
      const begun = attempts[i];
      assert.ok(begun !== undefined, `${token} ended without a beginning`);
      attempts[i] = { ...begun, ended: true, endedAt: at };
    }
  }
  return found;
}

/** Events whose handlers leave effects. */
export const TRACED: ReadonlySet<string> = new Set(['steady', 'failing', 'ordered']);

/**
 * Compares the jobs with what their handlers did: a job that is done was done in its last attempt, and not begun
 * again once a crash had shown it as done. An attempt begins again only where its process has died. `doneBy` is the run after which a job was first seen as done.
 */
export function checkEffects(
  jobs: readonly StoredJob[],
  effects: Effects,
  doneBy: ReadonlyMap<number, number>,
): void {
  for (const { seq, token, event, status, attempts: last, crashes } of jobs) {
    if (status !== 'done' || !TRACED.has(event)) continue;
    const attempts = effects.get(token) ?? [];
    assert.ok(
      attempts.some(({ attempt, ended }) => attempt === last && ended),
      `${token} is done in attempt ${last}, which its handler did not finish: ${JSON.stringify(attempts)}`,
    );
    const numbers = attempts.map(({ attempt }) => attempt);
    const again = numbers.length - new Set(numbers).size;
    assert.ok(again <= crashes, `${token} saw an attempt again after ${crashes} crashes: ${numbers}`);
    const seen = doneBy.get(seq) ?? Number.POSITIVE_INFINITY;
    assert.ok(
      attempts.every(({ run }) => run <= seen),
      `${token} was done after run ${seen} and handled again: ${JSON.stringify(attempts)}`,
    );
  }
}

/** Jobs of one key run one after the other: none begins before the one that came before it has ended for good. */
export function checkOrder(
  jobs: readonly StoredJob[],
  effects: Effects,
  keyOf: (token: string) => string,
): void {
  const lastEnd = new Map<string, number>();
  for (const { token, event } of jobs) {
    if (event !== 'ordered') continue;
    const attempts = effects.get(token) ?? [];
    const begun = Math.min(...attempts.map(({ begunAt }) => begunAt));
    const key = keyOf(token);
    assert.ok(begun > (lastEnd.get(key) ?? -1), `${token} began before the one ahead of it had ended`);
    lastEnd.set(key, Math.max(...attempts.map(({ begunAt, endedAt }) => Math.max(begunAt, endedAt))));
  }
}
