import type { Marks } from '../../../inbox/marks.ts';
import type { DatabaseObserver } from '../../observer.ts';
import type { Notifier } from '../notifier.ts';
import type { Server } from '../pool/server.ts';
import { storable, stored } from '../text.ts';
import { singleWrite } from '../write-queue.ts';
import { appendAtMark, type Bodies } from './append.ts';
import { SERVER_NOW } from './server-clock.ts';

const READ = { name: 'marks', text: 'SELECT name, at FROM marks WHERE name = ANY ($1::text[])' };
const MOVE = {
  name: 'move-mark',
  text: `
    INSERT INTO marks (name, at) VALUES ($1, $3::bigint)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE marks.at = $2::bigint RETURNING name`,
};
const CLOCK = { name: 'clock', text: `SELECT ${SERVER_NOW}` };

/** The marks in PostgreSQL. */
export function postgresMarks(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
  bodies: Bodies,
): Marks {
  return {
    async read(names) {
      const rows = await server.read(READ, [names.map((name) => storable(name))]);
      return new Map(rows.map(([name, at]) => [stored(String(name)), Number(at)]));
    },
    async move({ name, from, to }) {
      const values = [storable(name), from, to];
      return (await singleWrite(observer, () => server.write(MOVE, values))).length > 0;
    },
    async append(move, delivery) {
      const appended = await singleWrite(observer, () => appendAtMark(server, move, delivery, bodies));
      if (appended !== undefined && appended !== 'duplicate') notifier.notify('work');
      return appended;
    },
    async clock() {
      const [row] = await server.read(CLOCK, []);
      return Number(row?.[0]);
    },
  };
}
