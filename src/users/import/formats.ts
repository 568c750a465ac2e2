import { ArrayReader } from './array-reader.ts';
import { CsvReader } from './csv-reader.ts';
import type { EntryReader } from './import-entry.ts';
import { LinesReader } from './lines-reader.ts';

/** What an import can be written in. */
export type ImportFormat = 'ndjson' | 'csv' | 'array';

/** Makes the reader of a format. */
export function entryReader(format: ImportFormat): EntryReader {
  if (format === 'csv') return new CsvReader();
  return format === 'array' ? new ArrayReader() : new LinesReader();
}
