import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import * as esbuild from 'esbuild';
import { licenseNotices } from './license-notices.ts';
import { type Bundle, nameOf, outputFiles, pageOptions } from './page-bundle.ts';
import { pages } from './page-inputs.ts';

const shared = {
  ...pageOptions,
  outdir: pages.graphiql.directory,
  // Without this alias, the parser would be bundled twice, under both names.
  alias: { 'prettier/parser-graphql': 'prettier/plugins/graphql' },
  loader: { '.ttf': 'file' },
} as const satisfies esbuild.BuildOptions;

/**
 * Turns the data URLs of GraphiQL's fonts into files. The browser then fetches only the scripts that a page
 * shows, and the policy needs no `data:` fonts.
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

/** Bundles the page and its workers. The workers come first, because the page refers to them by name. */
export async function bundleGraphiql(): Promise<Bundle> {
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
    entryPoints: { graphiql: `${pages.graphiql.directory}main.ts` },
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
