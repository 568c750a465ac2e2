import { basename } from 'node:path';
import type * as esbuild from 'esbuild';

/** A file to serve. */
export interface OutputFile {
  readonly name: string;
  readonly contents: Uint8Array;
}

/** A page, its workers and its fonts. */
export interface Bundle {
  readonly files: readonly OutputFile[];
  /** Name of the page's module script. */
  readonly script: string;
  /** Name of the page's style sheet. */
  readonly style: string;
  /** The licences of the bundled packages. */
  readonly notices: string;
}

/** The esbuild options of every page. */
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

/** The files that esbuild made. */
export function outputFiles(result: { readonly outputFiles: readonly esbuild.OutputFile[] }): OutputFile[] {
  return result.outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }));
}

/** The name of the matching file. */
export function nameOf(files: readonly OutputFile[], pattern: RegExp): string {
  const file = files.find(({ name }) => pattern.test(name));
  if (file === undefined) throw new Error(`The bundle holds no file like ${pattern}.`);
  return file.name;
}
