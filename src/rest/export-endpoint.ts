import { preferences, preferred, type Reply, type RequestContext } from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { ImportFormat, ImportOutcome } from '../relations/import.ts';
import type { ExportFormat } from '../relations/pages.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { userLister } from './lists.ts';
import { JSON_TYPE } from './rest-errors.ts';
import type { Validators } from './validators.ts';
import { isConditional, listValidators, notModified, validatorHeaders } from './validators.ts';

const EXPORT_TYPES: Readonly<Record<string, ExportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const CHOICES = [JSON_TYPE, ...Object.keys(EXPORT_TYPES)];
const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
};

/** The format that the client accepts for the list; undefined for JSON, which `text/*` and `*\/*` get too. */
export function askedExport({ headers }: Pick<RequestContext, 'headers'>): ExportFormat | undefined {
  const { accept } = headers;
  if (accept === undefined || !/ndjson|csv/i.test(accept)) return undefined;
  const type = preferred(accept, CHOICES, ({ name }) => !/^text\/\*$/.test(name));
  return EXPORT_TYPES[type ?? ''];
}

/** Answers with all users, one per line. */
export function exporter(
  users: DatabaseUserStore,
): (format: ExportFormat, ctx: RequestContext) => MaybePromise<Reply> {
  const lists = { ndjson: userLister(users, 'ndjson'), csv: userLister(users, 'csv') };
  return (format, ctx) => {
    const type = CONTENT_TYPES[format];
    const headersOf = (validators: Validators) => ({ ...validatorHeaders(validators), vary: 'accept' });
    const whole = () =>
      whenReady(lists[format](), ({ body, state }) => ({
        status: 200,
        type,
        body,
        headers: headersOf(exportValidators(format, state)),
      }));
    if (!isConditional(ctx)) return whole();
    return whenReady(users.state(), (state) => {
      const validators = exportValidators(format, state);
      const known = notModified(ctx, validators);
      return known === undefined ? whole() : { ...known, type, headers: headersOf(validators) };
    });
  };
}

/** Validators of an export. The tag includes the format, so that it differs from that of the list as JSON. */
function exportValidators(format: ExportFormat, state: string): Validators {
  const { etag, changed } = listValidators(state);
  return { etag: etag.replace(/"$/, `.${format}"`), changed };
}

/** Writes the report of an import: a line of JSON for each imported line, and the totals in the last one. */
export class ImportReport {
  readonly #isMinimal: boolean;
  #created = 0;
  #refused = 0;

  /** `isMinimal` omits the lines that were stored. */
  constructor(isMinimal: boolean) {
    this.#isMinimal = isMinimal;
  }

  lines(outcomes: readonly ImportOutcome[]): string {
    let text = '';
    for (const outcome of outcomes) {
      if ('id' in outcome) {
        this.#created++;
        if (!this.#isMinimal) text += `{"line":${outcome.line},"id":${outcome.id}}\n`;
      } else {
        this.#refused++;
        text += `${JSON.stringify(outcome)}\n`;
      }
    }
    return text;
  }

  /**
   * The last line, present only if the whole import was read. `skipped` is the line up to which an earlier
   * attempt stored it.
   */
  end(skipped: number): string {
    const totals = { created: this.#created, refused: this.#refused, ...(skipped > 0 ? { skipped } : {}) };
    return `${JSON.stringify(totals)}\n`;
  }
}

/** The line that ends a report instead of the totals if the import failed. */
export function stopLine(code: string, reason: string, line?: number): string {
  return `${JSON.stringify({ ...(line === undefined ? {} : { line }), code, reason, stopped: true })}\n`;
}

/** The options of an import. */
export interface AskedImport {
  readonly format: ImportFormat;
  /** Whether all lines are stored in one transaction; otherwise each line succeeds or fails alone. */
  readonly isWhole: boolean;
  /** Whether the report omits the lines that were stored. */
  readonly isMinimal: boolean;
}

const IMPORT_TYPES: Readonly<Record<string, ImportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const JSON_TYPES: ReadonlySet<string> = new Set(['', 'application/json']);

/**
 * Recognises an import by its media type, or by a JSON array with `Prefer: transaction=`. Undefined for other
 * creates, including arrays without the preference, which the contract refuses.
 */
export function askedImport(
  request: Pick<RequestContext, 'headers' | 'contentType'>,
): AskedImport | undefined {
  const { headers, contentType } = request;
  // Most requests have neither, so this check comes first.
  const mayBe = headers.prefer !== undefined || /ndjson|csv/i.test(contentType ?? '');
  if (!mayBe) return undefined;
  const [type = ''] = (contentType ?? '').split(';', 1);
  const name = type.trim().toLowerCase();
  const prefers = preferences(request);
  const transaction = prefers.get('transaction');
  const isArray = (transaction === 'all' || transaction === 'line') && JSON_TYPES.has(name);
  const format = IMPORT_TYPES[name] ?? (isArray ? 'array' : undefined);
  if (format === undefined) return undefined;
  return { format, isWhole: transaction === 'all', isMinimal: prefers.get('return') === 'minimal' };
}

/** The preferences that were applied, for Preference-Applied. */
export function appliedPreferences({ isWhole, isMinimal }: AskedImport): string {
  return `transaction=${isWhole ? 'all' : 'line'}${isMinimal ? ', return=minimal' : ''}`;
}
