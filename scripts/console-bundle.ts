import * as esbuild from 'esbuild';
import { licenseNotices } from './license-notices.ts';
import { type Bundle, nameOf, outputFiles, pageOptions } from './page-bundle.ts';
import { pages } from './page-inputs.ts';

/** Bundles one of the pages whose sources are those of the console, by its entry. */
export async function bundleConsole(page: 'console' | 'portal', entry: string): Promise<Bundle> {
  const { directory } = pages[page];
  const built = await esbuild.build({
    ...pageOptions,
    format: 'esm',
    jsx: 'automatic',
    outdir: directory,
    entryPoints: { [page]: `${directory}${entry}` },
  });
  const files = outputFiles(built);
  return {
    files,
    script: nameOf(files, /\.js$/),
    style: nameOf(files, /\.css$/),
    notices: await licenseNotices('.', Object.keys(built.metafile.inputs)),
  };
}
