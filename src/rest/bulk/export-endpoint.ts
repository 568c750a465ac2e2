import { Readable } from 'node:stream';
import { preferred } from '../../http/accept.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { DatabaseUserStore } from '../../users/database-user-store.ts';
import { type ExportFormat, exportHead, exportUsers } from '../../users/export-users.ts';
import { JSON_TYPE } from '../envelope.ts';
import { isConditional, listValidators, notModified, validatorHeaders } from '../validators.ts';

const TYPES: Readonly<Record<string, ExportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const CHOICES = [JSON_TYPE, ...Object.keys(TYPES)];

/** What a list is to be written in; undefined for JSON, which is what `text/*` and `*\/*` get. */
export function askedExport({ headers }: Pick<Exchange, 'headers'>): ExportFormat | undefined {
  const { accept } = headers;
  if (accept === undefined || !/ndjson|csv/i.test(accept)) return undefined;
  const type = preferred(accept, CHOICES, ({ name }) => !/^text\/\*$/.test(name));
  return TYPES[type ?? ''];
}

/** Answers with all users that there are, a line each. */
export async function exportList(
  users: DatabaseUserStore,
  format: ExportFormat,
  exchange: Exchange,
): Promise<Reply> {
  const { etag, changed } = listValidators(await users.state());
  // A tag of its own, so that nobody takes it for the list as JSON.
  const validators = { etag: etag.replace(/"$/, `.${format}"`), changed };
  const type = exportType(format);
  const headers = { ...validatorHeaders(validators), vary: 'accept' };
  const known = isConditional(exchange) ? notModified(exchange, validators) : undefined;
  if (known !== undefined) return { ...known, type, headers };
  const upTo = await users.lastId();
  async function* text(): AsyncGenerator<string> {
    const head = exportHead(format);
    if (head !== '') yield head;
    for await (const rows of exportUsers(users, format, { after: 0, upTo })) yield rows.text;
  }
  const body = Readable.from(text(), { objectMode: false, highWaterMark: 1 });
  return { status: 200, type, body, headers };
}

function exportType(format: ExportFormat): string {
  return format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson';
}
