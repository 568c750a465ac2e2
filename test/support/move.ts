import assert from 'node:assert/strict';
import type { Relation } from '../../src/relations/relation.ts';
import { MoveEnd } from '../../src/sql/move/end.ts';
import { type MoveReport, moveDatabase } from '../../src/sql/move/move.ts';
import { MoveError } from '../../src/sql/move/tables.ts';

/** Where a move ends early. */
interface Stop {
  readonly step: 'copy' | 'compare';
  /** After so many rows. */
  readonly after: number;
}

/** Moves; ends early where `stop` says. */
export async function move(
  from: string,
  to: string,
  stop?: Stop,
  restart = false,
  relations: readonly Relation[] = [],
): Promise<MoveReport> {
  await using source = await MoveEnd.open(from, 'source', () => relations);
  await using target = await MoveEnd.open(to, 'target', () => relations);
  const controller = new AbortController();
  return await moveDatabase(source, target, {
    signal: controller.signal,
    restart,
    onProgress(step, done) {
      if (stop?.step === step && done >= stop.after) controller.abort();
    },
  });
}

/** Checks that an error is a refusal that says so. */
export const refused = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof MoveError, String(error));
  assert.match(error.message, pattern);
  return true;
};
