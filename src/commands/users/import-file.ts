import { createHash } from 'node:crypto';
import { createReadStream, type Stats, statSync } from 'node:fs';
import { extname } from 'node:path';
import type { ImportFormat } from '../../users/import/formats.ts';
import { UsageError } from '../argv/usage-error.ts';

const FORMATS: Readonly<Record<string, ImportFormat>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'array',
};
const CHUNK = 256 * 1024;

/** The format of an import by its name: that of `--format`, or the end of a file's name. Throws UsageError. */
export function formatOf(file: string, given: string | undefined): ImportFormat {
  const format = FORMATS[given ?? extname(file).slice(1).toLowerCase()];
  if (format !== undefined) return format;
  throw misuse(
    given === undefined
      ? 'The name of the file tells no format; say --format csv, ndjson or json'
      : '--format takes csv, ndjson or json',
  );
}

/** The size of a file in bytes; undefined for standard input. Throws UsageError. */
export function sizeOf(file: string): number | undefined {
  if (file === '-') return undefined;
  let stats: Stats;
  try {
    stats = statSync(file);
  } catch (error) {
    throw misuse(`The file cannot be read: ${(error as Error).message}`);
  }
  return stats.isFile() ? stats.size : undefined;
}

/** The bytes of a file, or of standard input. */
export function bytesOf(file: string): AsyncIterable<Uint8Array> {
  return file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK });
}

/** A name for the content of a file. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of bytesOf(file)) hash.update(chunk);
  return `file:${hash.digest('hex')}`;
}

const misuse = (problem: string) => new UsageError([problem], 'users import');
