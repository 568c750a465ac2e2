import { settingsOf } from '../../config/options/options.ts';
import { rest } from '../../rest/rest.ts';
import { restErrors } from '../../rest/rest-errors.ts';
import type { Parts } from '../parts.ts';

/** Wires the REST door over the users of the database. */
export function openRestDoor({ config, database, listener, apis, api }: Parts): void {
  const { requireIfMatch, idempotencyHours, maxImportBytes, maxStreams } = settingsOf(
    config.settings,
    'rest',
  );
  const { users, userFeed: feed } = database();
  listener('rest', restErrors).register(rest, {
    users,
    feed,
    requireIfMatch,
    idempotencyHours,
    maxImportBytes,
    maxStreams,
    api,
    cors: settingsOf(config.settings, 'rest.cors'),
  });
  apis.doors.set('rest', async () => (await import('../../rest/rest-api.ts')).restApi('', api));
}
