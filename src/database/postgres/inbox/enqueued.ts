import type { Enqueued, EnqueuedDeliveries } from '../../../inbox/enqueue/enqueued.ts';
import { OLDEST_ENQUEUED } from '../../enqueued-sql.ts';
import type { DatabaseObserver } from '../../observer.ts';
import type { Notifier } from '../notifier.ts';
import type { Row } from '../pool/connection.ts';
import type { Server } from '../pool/server.ts';
import { stored } from '../text.ts';
import { singleWrite } from '../write-queue.ts';
import { appendEnqueued, type Bodies } from './append.ts';

const OLDEST = { name: 'oldest-enqueued', text: OLDEST_ENQUEUED };

/** What programs have enqueued in PostgreSQL; each notifies with its commit. */
export function postgresEnqueued(
  server: Server,
  notifier: Notifier,
  observer: DatabaseObserver,
  bodies: Bodies,
): EnqueuedDeliveries {
  return {
    async oldest() {
      return (await server.readAlone(OLDEST, [])).map(enqueued);
    },
    async take(taken) {
      const results = await singleWrite(observer, () => appendEnqueued(server, taken, bodies));
      if (results.some((result) => result === 'stored' || result === 'revived')) notifier.notify('work');
      return results;
    },
    onEnqueued: (listener) => notifier.listen('enqueued', listener),
  };
}

function enqueued(row: Row): Enqueued {
  type Columns = [number, string, string, string, Uint8Array, number, string | null];
  const [seq, id, source, event, body, receivedAt, dedupKey] = row as Columns;
  const texts = { source: stored(source), event: stored(event), dedupKey: stored(dedupKey) };
  return { seq, id, ...texts, body, receivedAt };
}
