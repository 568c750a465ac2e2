import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { BuiltFile } from '../src/http/pages.ts';
import type { OutputFile } from './page-bundle.ts';

const contentTypes = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.ttf', 'font/ttf'],
  ['.woff', 'font/woff'],
  ['.woff2', 'font/woff2'],
]);

/** A file to write, and what the manifest says of it. */
export interface EncodedFile {
  readonly name: string;
  readonly entry: BuiltFile;
  readonly stored: Uint8Array;
}

/** Compresses a file, unless that saves less than 10 %, as of woff2 fonts. Every browser accepts gzip. */
export async function encodeFile({ name, contents }: OutputFile): Promise<EncodedFile> {
  const contentType = contentTypes.get(extname(name));
  if (contentType === undefined) throw new Error(`Add a content type for ${name}.`);
  const encoded = await promisify(gzip)(contents, { level: 9 });
  const isCompressed = encoded.length <= contents.length * 0.9;
  const entry = { contentType, size: contents.length, isCompressed };
  return { name, entry, stored: isCompressed ? encoded : contents };
}
