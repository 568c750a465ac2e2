import type { DeliveryStatus } from '../inbox/delivery-log.ts';

/** The jobs that make a status, in the order in which they are asked. */
const STATUS_OF: readonly (readonly [DeliveryStatus, string])[] = [
  ['processing', `status = 'open' AND owner IS NOT NULL`],
  ['pending', `status = 'open'`],
  ['dead', `status = 'dead'`],
  ['done', `status = 'done'`],
  ['discarded', `status = 'discarded'`],
];
const CASES = STATUS_OF.map(
  ([status, condition]) => `WHEN count(*) FILTER (WHERE ${condition}) > 0 THEN '${status}'`,
);

/**
 * The status of a delivery, which is the row `d`, as an expression of every engine. It looks at the jobs of that
 * delivery and nothing else, whatever the engine believes of the other indexes.
 */
export const STATUS = `(SELECT CASE ${CASES.join(' ')} ELSE 'unhandled' END FROM jobs WHERE delivery = d.seq)`;
