import type { StoredDelivery } from '../../../inbox/delivery.ts';
import type { Row } from '../pool/connection.ts';
import { stored } from '../text.ts';

/** The columns of a delivery as a handler gets it, without its `seq`. */
export const DELIVERY = 'd.id, d.source, d.event, d.data_pointer, d.content_type, d.body, d.received_at';

/** Reads the columns of `DELIVERY`. */
export function storedDelivery(row: Row): StoredDelivery {
  const [id, source, event, dataPointer, contentType, body, receivedAt] = row as [
    string,
    string,
    string | null,
    string,
    string | null,
    Uint8Array,
    number,
  ];
  return {
    id,
    source: stored(source),
    event: stored(event),
    dataPointer: stored(dataPointer),
    contentType: stored(contentType),
    body,
    receivedAt,
  };
}
