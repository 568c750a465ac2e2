import type { DeadLetters } from '../../../inbox/alerts/dead-letters.ts';
import { DEAD_LETTERS } from '../../dead-letters-sql.ts';
import type { Server } from '../pool/server.ts';
import { stored } from '../text.ts';

const STATEMENT = { name: 'dead-letters', text: DEAD_LETTERS };

/** Reads the dead letters that `Inbox.deadLetters` gives. */
export async function postgresDeadLetters(
  server: Server,
  until: number,
  interval: number,
): Promise<readonly DeadLetters[]> {
  const rows = await server.readAlone(STATEMENT, [until, interval]);
  return rows.map(([target, count, since]) => ({
    target: stored(String(target)),
    count: Number(count),
    since: Number(since),
  }));
}
