import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import * as esbuild from 'esbuild';
import { pageDirectory } from './graphiql-inputs.ts';
import { licenseNotices } from './license-notices.ts';

/** A file to be served. */
export interface OutputFile {
  readonly name: string;
  readonly contents: Uint8Array;
}

/** The page, its workers and its fonts. */
export interface Bundle {
  readonly files: readonly OutputFile[];
  /** Name of the page's module script. */
  readonly script: string;
  /** Name of the page's style sheet. */
  readonly style: string;
  /** The licences of the packages inside. */
  readonly notices: string;
}

const shared = {
  bundle: true,
  write: false,
  metafile: true,
  minify: true,
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning',
  outdir: pageDirectory,
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  define: { 'process.env.NODE_ENV': '"production"' },
  // Two names of one parser would put it in twice.
  alias: { 'prettier/parser-graphql': 'prettier/plugins/graphql' },
  loader: { '.ttf': 'file' },
} as const satisfies esbuild.BuildOptions;

/**
 * GraphiQL's fonts are data URLs inside its styles. As files they are fetched only for the scripts that
 * a page really shows, and the policy needs no `data:` fonts.
 */
const fontFiles: esbuild.Plugin = {
  name: 'font-files',
  setup(build) {
    const fonts = new Map<string, Buffer>();
    build.onLoad({ filter: /@graphiql[\\/]react[\\/]font[\\/][^\\/]+\.css$/ }, async ({ path }) => {
      const styles = await readFile(path, 'utf8');
      const contents = styles.replace(/url\(data:font\/(\w+);base64,([^)]+)\)/g, (_url, type, base64) => {
        const name = `${basename(path, '.css')}-${fonts.size}.${type}`;
        fonts.set(name, Buffer.from(base64, 'base64'));
        return `url("font:${name}")`;
      });
      return { contents, loader: 'css' };
    });
    build.onResolve({ filter: /^font:/ }, ({ path }) => ({ path: path.slice(5), namespace: 'font' }));
    build.onLoad({ filter: /.*/, namespace: 'font' }, ({ path }) => ({
      contents: fonts.get(path) ?? '',
      loader: 'file',
    }));
  },
};

function outputFiles(result: { readonly outputFiles: readonly esbuild.OutputFile[] }): OutputFile[] {
  return result.outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }));
}

function nameOf(files: readonly OutputFile[], pattern: RegExp): string {
  const file = files.find(({ name }) => pattern.test(name));
  if (file === undefined) throw new Error(`The bundle holds no file like ${pattern}.`);
  return file.name;
}

/** Bundles the page and its workers. The workers come first, because the page knows them by name. */
export async function bundle(): Promise<Bundle> {
  const workerBuild = await esbuild.build({
    ...shared,
    format: 'iife',
    entryPoints: {
      'editor.worker': 'monaco-editor/esm/vs/editor/editor.worker.js',
      'json.worker': 'monaco-editor/esm/vs/language/json/json.worker.js',
      'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
    },
  });
  const workers = outputFiles(workerBuild);
  const workerFiles = {
    editor: nameOf(workers, /^editor\.worker-/),
    json: nameOf(workers, /^json\.worker-/),
    graphql: nameOf(workers, /^graphql\.worker-/),
  };
  const pageBuild = await esbuild.build({
    ...shared,
    format: 'esm',
    entryPoints: { graphiql: `${pageDirectory}main.ts` },
    define: { ...shared.define, WORKER_FILES: JSON.stringify(workerFiles) },
    plugins: [fontFiles],
  });
  const page = outputFiles(pageBuild);
  const inputs = [workerBuild, pageBuild].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  return {
    files: [...workers, ...page],
    script: nameOf(page, /\.js$/),
    style: nameOf(page, /\.css$/),
    notices: await licenseNotices('.', inputs),
  };
}
