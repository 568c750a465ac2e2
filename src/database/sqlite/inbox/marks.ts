import type { DatabaseSync } from 'node:sqlite';
import type { Appended } from '../../../inbox/inbox.ts';
import type { Marks } from '../../../inbox/marks.ts';
import { readRows } from '../read-row.ts';
import type { StepRows } from '../writer/batch.ts';
import type { WriteQueue } from '../writer/write-queue.ts';
import { type AppendSteps, readAppended } from './append-steps.ts';

/** Moves the mark `?1` from `?2` to `?3`. */
export const MOVE_MARK = `
    INSERT INTO marks (name, at) VALUES (?1, ?3)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE at = ?2
    RETURNING seq`;

/** The marks in SQLite. */
export function sqliteMarks(reads: DatabaseSync, writes: WriteQueue, appendSteps: AppendSteps): Marks {
  const marks = reads.prepare('SELECT name, at FROM marks WHERE name IN (SELECT value FROM json_each(?))');
  const readMoved = ([moved = [], ...rows]: StepRows): Appended | undefined =>
    moved.length === 0 ? undefined : readAppended(rows);
  return {
    read(names) {
      const rows = readRows<{ name: string; at: number }>(marks, JSON.stringify(names));
      return new Map(rows.map(({ name, at }) => [name, at]));
    },
    async move({ name, from, to }) {
      return (await writes.write('moveMark', name, from, to)).length > 0;
    },
    append({ name, from, to }, delivery) {
      const move = { statement: 'moveMark', values: [name, from, to] } as const;
      return writes.submit([move, ...appendSteps(delivery, 'if-changed')], readMoved);
    },
    clock: Date.now,
  };
}
