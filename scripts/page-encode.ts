import { extname } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { BuiltFile } from '../src/http/pages.ts';
import { type ContentCoding, storedName } from '../src/http/pages.ts';
import type { OutputFile } from './page-bundle.ts';

const contentTypes = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.ttf', 'font/ttf'],
  ['.woff', 'font/woff'],
  ['.woff2', 'font/woff2'],
]);

const coders = [
  {
    coding: 'br',
    // Quality 11 saves another 10 % but takes ten times as long as the rest of the build.
    encode: (contents: Uint8Array) =>
      promisify(brotliCompress)(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  },
  {
    coding: 'gzip',
    encode: (contents: Uint8Array) => promisify(gzip)(contents, { level: 9 }),
  },
] as const;

/** A file to write: `forms` maps each file name to its bytes. */
export interface EncodedFile {
  readonly name: string;
  readonly entry: BuiltFile;
  readonly forms: ReadonlyMap<string, Uint8Array>;
}

/** Compresses a file. A form that saves less than 10 %, as for woff2 fonts, is omitted. */
export async function encodeFile({ name, contents }: OutputFile): Promise<EncodedFile> {
  const contentType = contentTypes.get(extname(name));
  if (contentType === undefined) throw new Error(`Add a content type for ${name}.`);

  const codings: ContentCoding[] = [];
  const forms = new Map([[name, contents]]);
  for (const { coding, encode } of coders) {
    const encoded = await encode(contents);
    if (encoded.length > contents.length * 0.9) continue;
    codings.push(coding);
    forms.set(storedName(name, coding), encoded);
  }
  return { name, entry: { contentType, codings }, forms };
}
