import type { StoredDelivery } from '../../../inbox/delivery.ts';

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

export function storedDelivery(row: DeliveryRow): StoredDelivery {
  const { id, source, event, data_pointer: dataPointer, content_type: contentType, body } = row;
  return { id, source, event, dataPointer, contentType, body, receivedAt: row.received_at };
}
