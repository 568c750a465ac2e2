import type { DatabaseSync } from 'node:sqlite';
import type { Appended, Checkpoints, DeadLetters } from '../../inbox/inbox.ts';
import { DEAD_LETTERS } from '../inbox-sql.ts';
import { readRows } from '../sqlite/connection.ts';
import type { StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { type AppendSteps, readAppended } from './append.ts';

/** Moves the checkpoint `?1` from `?2` to `?3`. */
export const MOVE_CHECKPOINT = `
    INSERT INTO checkpoints (name, at) VALUES (?1, ?3)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE at = ?2
    RETURNING seq`;

/** Checkpoints in SQLite. */
export function sqliteCheckpoints(
  reads: DatabaseSync,
  writes: WriteQueue,
  appendSteps: AppendSteps,
): Checkpoints {
  const checkpoints = reads.prepare(
    'SELECT name, at FROM checkpoints WHERE name IN (SELECT value FROM json_each(?))',
  );
  const readMoved = ([moved = [], ...rows]: StepRows): Appended | undefined =>
    moved.length === 0 ? undefined : readAppended(rows);
  return {
    read(names) {
      const rows = readRows<{ name: string; at: number }>(checkpoints, JSON.stringify(names));
      return new Map(rows.map(({ name, at }) => [name, at]));
    },
    async move({ name, from, to }) {
      return (await writes.write('moveCheckpoint', name, from, to)).length > 0;
    },
    append({ name, from, to }, delivery) {
      const move = { statement: 'moveCheckpoint', values: [name, from, to] } as const;
      return writes.submit([move, ...appendSteps(delivery, 'if-changed')], readMoved);
    },
    clock: Date.now,
  };
}

/** Implements `Inbox.deadLetters` for an SQLite file. */
export function sqliteDeadLetters(
  reads: DatabaseSync,
): (until: number, interval: number) => readonly DeadLetters[] {
  const statement = reads.prepare(DEAD_LETTERS.replaceAll('$', '?'));
  return (until, interval) => readRows<DeadLetters>(statement, until, interval);
}
