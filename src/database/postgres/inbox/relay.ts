import type { RelayStore } from '../../../inbox/relay/relay-store.ts';
import type { DatabaseObserver } from '../../observer.ts';
import type { Notifier } from '../notifier.ts';
import type { Server } from '../pool/server.ts';
import { singleWrite } from '../write-queue.ts';
import { appendRelayed, type Bodies } from './append.ts';

const BEGIN = {
  name: 'relay-begin',
  text: `
    INSERT INTO user_relay (id, position, at, moved_at) VALUES (1, $1::bigint, $2::bigint, $3::bigint)
    ON CONFLICT (id) DO UPDATE SET moved_at = excluded.moved_at RETURNING position, at`,
};
const MOVE = {
  name: 'relay-move',
  text: `
    UPDATE user_relay SET position = $3::bigint, at = $4::bigint, moved_at = $5::bigint
    WHERE position = $1::bigint AND at = $2::bigint RETURNING position`,
};
const END = { name: 'relay-end', text: 'DELETE FROM user_relay' };

/** How far deliveries were made of users' events, in PostgreSQL. */
export function postgresRelay(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
  bodies: Bodies,
): RelayStore {
  return {
    async begin({ position, at }) {
      const [row] = await singleWrite(observer, () => server.write(BEGIN, [position, at, Date.now()]));
      return { position: Number(row?.[0]), at: Number(row?.[1]) };
    },
    async move(from, to, deliveries) {
      const move = [from.position, from.at, to.position, to.at, Date.now()];
      if (deliveries.length === 0) {
        return (await singleWrite(observer, () => server.write(MOVE, move))).length > 0;
      }
      const moved = await singleWrite(observer, () => appendRelayed(server, move, deliveries, bodies));
      if (moved) notifier.notify('work');
      return moved;
    },
    async end() {
      await server.write(END, []);
    },
  };
}
