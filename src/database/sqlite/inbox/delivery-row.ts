import type { NewJob, StoredDelivery } from '../../../inbox/delivery.ts';
import { storedKey } from '../../stored-key.ts';

/** A row of `deliveries`. */
export interface DeliveryRow {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  readonly data_pointer: string;
  readonly content_type: string | null;
  readonly body: Uint8Array;
  readonly received_at: number;
}

/** The delivery of a row. */
export function storedDelivery(row: DeliveryRow): StoredDelivery {
  const { id, source, event, data_pointer: dataPointer, content_type: contentType, body } = row;
  return { id, source, event, dataPointer, contentType, body, receivedAt: row.received_at };
}

/** Jobs as a JSON array of `[target, order_key]`, for the statements that insert or reopen them. */
export function jobsJson(jobs: readonly NewJob[]): string {
  return JSON.stringify(jobs.map(({ target, orderKey }) => [target, storedKey(orderKey)]));
}
