import type { DeliveryStatus } from '../inbox/delivery-log.ts';

const HAS = (condition: string) => `EXISTS (SELECT 1 FROM jobs WHERE delivery = d.seq AND ${condition})`;

/** The condition that makes a status, in the order in which they are asked. */
const STATUS_OF: readonly (readonly [DeliveryStatus, string])[] = [
  ['processing', HAS(`status = 'open' AND owner IS NOT NULL`)],
  ['pending', HAS(`status = 'open'`)],
  ['dead', HAS(`status = 'dead'`)],
  ['done', HAS(`status = 'done'`)],
  ['discarded', HAS(`status = 'discarded'`)],
];

/** The status of a delivery, which is the row `d`, as an expression of every engine. */
export const STATUS = `CASE ${STATUS_OF.map(([status, condition]) => `WHEN ${condition} THEN '${status}'`).join(' ')} ELSE 'unhandled' END`;
