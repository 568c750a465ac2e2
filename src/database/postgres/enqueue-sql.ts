import { channelOf } from './topics.ts';

/** Enqueues a delivery and notifies the services; the server sends a notification with the commit. */
export const ENQUEUE_IN_POSTGRES = `
  WITH stored AS (
    INSERT INTO enqueued (id, source, event, body, received_at, dedup_key)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING id)
  SELECT pg_notify('${channelOf('enqueued')}', '') FROM stored`;
