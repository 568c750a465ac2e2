import * as esbuild from 'esbuild';
import { licenseNotices } from './license-notices.ts';
import { type Bundle, nameOf, outputFiles, pageOptions } from './page-bundle.ts';
import { pages } from './page-inputs.ts';

/** Bundles the console. */
export async function bundleConsole(): Promise<Bundle> {
  const { directory } = pages.console;
  const built = await esbuild.build({
    ...pageOptions,
    format: 'esm',
    jsx: 'automatic',
    outdir: directory,
    entryPoints: { console: `${directory}main.tsx` },
  });
  const files = outputFiles(built);
  return {
    files,
    script: nameOf(files, /\.js$/),
    style: nameOf(files, /\.css$/),
    notices: await licenseNotices('.', Object.keys(built.metafile.inputs)),
  };
}
