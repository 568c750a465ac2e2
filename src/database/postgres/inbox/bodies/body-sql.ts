/** The length of the body of a delivery in the row `row`, wherever the body is. */
export const bodyLength = (row: string) => `coalesce(${row}.body_length, octet_length(${row}.body))`;

/** The body of a delivery in the row `row`, wherever it is. It locks all slots; `bodiesOf` does not. */
export const bodyOf = (row: string) => `
  coalesce(${row}.body, (SELECT b.body FROM delivery_bodies AS b WHERE b.slot = ${row}.slot AND b.seq = ${row}.seq))`;

/** What a delivery holds in body and headers, in bytes. */
export const DELIVERY_BYTES = `${bodyLength('deliveries')} + coalesce(octet_length(headers), 0)`;
