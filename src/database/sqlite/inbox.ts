import type { ClaimedDelivery, NewDelivery } from '../../inbox/delivery.ts';
import type { Inbox } from '../../inbox/inbox.ts';
import type { WriteQueue } from './write-queue.ts';

/** The inbox in SQLite. One process owns the file, so what it finds `processing` at its start has no owner. */
export class SqliteInbox implements Inbox {
  readonly #writes: WriteQueue;

  constructor(writes: WriteQueue) {
    this.#writes = writes;
  }

  async append({ id, event, body, receivedAt, status }: NewDelivery): Promise<void> {
    await this.#writes.write('appendDelivery', id, event, body, receivedAt, status);
  }

  async recover(): Promise<number> {
    return (await this.#writes.write('recoverDeliveries')).length;
  }

  async claim(limit: number): Promise<readonly ClaimedDelivery[]> {
    const rows = await this.#writes.write('claimDeliveries', limit);
    // RETURNING has no order of its own.
    return rows
      .toSorted((a, b) => Number(a[0]) - Number(b[0]))
      .map(([, id, event, body, receivedAt]) => ({
        id: String(id),
        event: String(event),
        body: body as Uint8Array,
        receivedAt: Number(receivedAt),
      }));
  }

  async settle(id: string, status: 'done' | 'failed' | 'unhandled' | 'pending'): Promise<void> {
    await this.#writes.write('settleDelivery', status, id);
  }
}
