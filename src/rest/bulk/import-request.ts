import type { Exchange } from '../../http/endpoint.ts';
import { preferences } from '../../http/prefer.ts';
import type { ImportFormat } from '../../users/import/formats.ts';

/** What an import asks for. */
export interface AskedImport {
  readonly format: ImportFormat;
  /** Whether all lines are stored in one transaction or none; else each stands alone. */
  readonly isWhole: boolean;
  /** Whether the report leaves out the lines that were stored. */
  readonly isMinimal: boolean;
}

const TYPES: Readonly<Record<string, ImportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const JSON_TYPES: ReadonlySet<string> = new Set(['', 'application/json']);

/**
 * Reads whether a create is an import: by its media type, or as a JSON array by `Prefer: transaction=`. Undefined for all
 * other creates, those with an array too: by the contract they fail.
 */
export function askedImport(request: Pick<Exchange, 'headers' | 'contentType'>): AskedImport | undefined {
  const { headers, contentType } = request;
  // Most creates have neither.
  const mayBe = headers.prefer !== undefined || /ndjson|csv/i.test(contentType ?? '');
  if (!mayBe) return undefined;
  const [type = ''] = (contentType ?? '').split(';', 1);
  const name = type.trim().toLowerCase();
  const prefers = preferences(request);
  const transaction = prefers.get('transaction');
  const isArray = (transaction === 'all' || transaction === 'line') && JSON_TYPES.has(name);
  const format = TYPES[name] ?? (isArray ? 'array' : undefined);
  if (format === undefined) return undefined;
  return { format, isWhole: transaction === 'all', isMinimal: prefers.get('return') === 'minimal' };
}

/** The preferences that are followed, for Preference-Applied. */
export function appliedPreferences({ isWhole, isMinimal }: AskedImport): string {
  return `transaction=${isWhole ? 'all' : 'line'}${isMinimal ? ', return=minimal' : ''}`;
}
