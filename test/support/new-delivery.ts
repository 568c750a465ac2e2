import { randomUUIDv7 } from 'node:crypto';
import type { NewDelivery } from '../../src/inbox/delivery.ts';

/** When the deliveries of tests came. */
export const NOW = 1_700_000_000_000;

/** A delivery of the event `e` with one job, of the target `t`. */
export function newDelivery(changes: Partial<NewDelivery> = {}): NewDelivery {
  return {
    id: randomUUIDv7(),
    source: '',
    event: 'e',
    dataPointer: '/data',
    contentType: 'application/json',
    body: Buffer.from('{"event":"e","data":1}'),
    receivedAt: NOW,
    dedupKey: null,
    jobs: [{ target: 't', orderKey: null }],
    ...changes,
  };
}
