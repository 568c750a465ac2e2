/** Every statement that writes, by its name; the connection that writes prepares each of them once. */
export const WRITES = {
  createUser: 'INSERT INTO users (name, email) VALUES (?, ?) RETURNING id',
  updateUser: 'UPDATE users SET name = ?, email = ? WHERE id = ? RETURNING id',
  removeUser: 'DELETE FROM users WHERE id = ? RETURNING id',
  appendDelivery:
    'INSERT INTO deliveries (id, event, body, received_at, status) VALUES (?, ?, ?, ?, ?) RETURNING seq',
  claimDeliveries: `
    UPDATE deliveries SET status = 'processing'
    WHERE seq IN (SELECT seq FROM deliveries WHERE status = 'pending' ORDER BY seq LIMIT ?)
    RETURNING seq, id, event, body, received_at`,
  settleDelivery: "UPDATE deliveries SET status = ? WHERE id = ? AND status = 'processing' RETURNING seq",
  recoverDeliveries: `UPDATE deliveries SET status = 'pending' WHERE status = 'processing' RETURNING seq`,
} as const;

export type WriteName = keyof typeof WRITES;
