import { basename } from 'node:path';
import type * as esbuild from 'esbuild';
import type { OutputFile } from './page.ts';

/** How every page is bundled: names hold a hash of the content. */
export const pageOptions = {
  bundle: true,
  write: false,
  metafile: true,
  minify: true,
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning',
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  define: { 'process.env.NODE_ENV': '"production"' },
} as const satisfies esbuild.BuildOptions;

export function outputFiles(result: { readonly outputFiles: readonly esbuild.OutputFile[] }): OutputFile[] {
  return result.outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }));
}

/** The name of the first file that matches. */
export function nameOf(files: readonly OutputFile[], pattern: RegExp): string {
  const file = files.find(({ name }) => pattern.test(name));
  if (file === undefined) throw new Error(`The bundle holds no file like ${pattern}.`);
  return file.name;
}
