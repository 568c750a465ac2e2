/** Reads what the doors read, where it is new: a damaged page fails the reads of its table and no others. */
export const PING = `
  SELECT (SELECT email FROM users ORDER BY id LIMIT 1), (SELECT email FROM users ORDER BY id DESC LIMIT 1),
    (SELECT id FROM deliveries ORDER BY seq DESC LIMIT 1), (SELECT status FROM jobs ORDER BY seq DESC LIMIT 1)`;
