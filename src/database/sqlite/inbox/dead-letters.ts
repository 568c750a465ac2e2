import type { DatabaseSync } from 'node:sqlite';
import type { DeadLetters } from '../../../inbox/alerts/dead-letters.ts';
import { DEAD_LETTERS } from '../../dead-letters-sql.ts';
import { readRows } from '../read-row.ts';

/** Reads the dead letters of an SQLite file that `Inbox.deadLetters` gives. */
export function sqliteDeadLetters(
  reads: DatabaseSync,
): (until: number, interval: number) => readonly DeadLetters[] {
  const statement = reads.prepare(DEAD_LETTERS.replaceAll('$', '?'));
  return (until, interval) => readRows<DeadLetters>(statement, until, interval);
}
