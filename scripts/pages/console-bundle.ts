import * as esbuild from 'esbuild';
import { licenseNotices } from '../license-notices.ts';
import { nameOf, outputFiles, pageOptions } from './bundle-options.ts';
import type { Bundle } from './page.ts';

/** Bundles the console. */
export async function bundleConsole(folder: string): Promise<Bundle> {
  const result = await esbuild.build({
    ...pageOptions,
    outdir: folder,
    format: 'esm',
    jsx: 'automatic',
    entryPoints: { console: `${folder}main.tsx` },
  });
  const files = outputFiles(result);
  return {
    files,
    script: nameOf(files, /^console-.*\.js$/),
    style: nameOf(files, /^console-.*\.css$/),
    notices: await licenseNotices('.', Object.keys(result.metafile.inputs)),
  };
}
