import type { ClaimedJob } from '../../../inbox/delivery.ts';
import type { Row } from '../pool/connection.ts';
import type { Server } from '../pool/server.ts';
import { stored } from '../text.ts';
import { bodiesOf } from './bodies/read-bodies.ts';

/** The columns of a claimed job that come from its delivery, the row `d`. */
export const CLAIMED =
  'd.id, d.source, d.event, d.data_pointer, d.content_type, d.headers, d.received_at, d.seq, d.slot, d.body, d.trace, d.sender_event';

/** The columns of a claimed job: its number, attempts, deaths, whether it has an order key, and `CLAIMED`. */
type Columns = readonly [
  number,
  number,
  number,
  boolean,
  string,
  string,
  string | null,
  string,
  string | null,
  string | null,
  number,
  number,
  number | null,
  Uint8Array | null,
  string | null,
  string | null,
];

/** Reads jobs from their rows, and the bodies that are in slots. Rejects as `Server.write` does. */
export async function claimedJobs(
  server: Server,
  claimed: readonly (readonly [target: string, Row])[],
): Promise<readonly ClaimedJob[]> {
  const inSlots = claimed.flatMap(([, row]) => {
    const [, , , , , , , , , , , seq, slot] = row as unknown as Columns;
    return slot === null ? [] : [{ seq, slot }];
  });
  const bodies = inSlots.length === 0 ? undefined : await bodiesOf(server, inSlots);
  return claimed.map(([target, row]) => {
    const columns = row as unknown as Columns;
    const [job, attempt, deaths, ordered, id, source, event, dataPointer, contentType, headers] = columns;
    const [receivedAt, seq, , inRow, trace, senderEvent] = columns.slice(10) as [
      number,
      number,
      number | null,
      Uint8Array | null,
      string | null,
      string | null,
    ];
    const body = inRow ?? bodies?.get(seq);
    if (!body) throw new Error(`The body of delivery ${id} is missing`);
    const names = { source: stored(source), event: stored(event), senderEvent: stored(senderEvent) };
    const texts = { ...names, dataPointer: stored(dataPointer) };
    const delivery = { id, ...texts, contentType: stored(contentType), headers, trace, body, receivedAt };
    return { job, target, attempt, deaths, ordered, delivery };
  });
}
