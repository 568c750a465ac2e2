import type { FastifyBaseLogger } from 'fastify';
import { requestFields } from '../observability/trace/request-fields.ts';
import type { ExchangeRecorder } from './exchange-log.ts';

/** Logs each exchange once it is over; without the query, which may hold secrets. */
export function accessLog(log: Pick<FastifyBaseLogger, 'info'>): ExchangeRecorder {
  return {
    record({ id, client, method, target, status, duration, requestHeaders }) {
      const [path] = target.split('?', 1);
      const durationMs = Math.round(duration * 10) / 10;
      const fields = requestFields({ id, headers: requestHeaders });
      log.info({ ...fields, client, method, path, status, durationMs }, 'request');
    },
  };
}
