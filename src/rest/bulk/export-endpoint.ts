import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import { preferred } from '../../http/accept.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { Validators } from '../../http/entity-tags.ts';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';
import type { ExportFormat } from '../../users/user-pages.ts';
import { JSON_TYPE } from '../envelope.ts';
import { userLister } from '../list-users.ts';
import { isConditional, listValidators, notModified, validatorHeaders } from '../validators.ts';

const TYPES: Readonly<Record<string, ExportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const CHOICES = [JSON_TYPE, ...Object.keys(TYPES)];
const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
};

/** What a list is to be written in; undefined for JSON, which is what `text/*` and `*\/*` get. */
export function askedExport({ headers }: Pick<Exchange, 'headers'>): ExportFormat | undefined {
  const { accept } = headers;
  if (accept === undefined || !/ndjson|csv/i.test(accept)) return undefined;
  const type = preferred(accept, CHOICES, ({ name }) => !/^text\/\*$/.test(name));
  return TYPES[type ?? ''];
}

/** Answers with all users that there are, a line each. */
export function exporter(
  users: DatabaseUserStore,
): (format: ExportFormat, exchange: Exchange) => MaybePromise<Reply> {
  const lists = { ndjson: userLister(users, 'ndjson'), csv: userLister(users, 'csv') };
  return (format, exchange) => {
    const type = CONTENT_TYPES[format];
    const headersOf = (validators: Validators) => ({ ...validatorHeaders(validators), vary: 'accept' });
    const whole = () =>
      whenReady(lists[format](), ({ body, state }) => ({
        status: 200,
        type,
        body,
        headers: headersOf(exportValidators(format, state)),
      }));
    if (!isConditional(exchange)) return whole();
    return whenReady(users.state(), (state) => {
      const validators = exportValidators(format, state);
      const known = notModified(exchange, validators);
      return known === undefined ? whole() : { ...known, type, headers: headersOf(validators) };
    });
  };
}

/** What a client may compare of an export: a tag of its own, so that nobody takes it for the list as JSON. */
function exportValidators(format: ExportFormat, state: string): Validators {
  const { etag, changed } = listValidators(state);
  return { etag: etag.replace(/"$/, `.${format}"`), changed };
}
