import { readFile } from 'node:fs/promises';
import * as esbuild from 'esbuild';
import { licenseNotices } from './license-notices.ts';
import { type Bundle, nameOf, outputFiles, pageOptions } from './page-bundle.ts';
import { pages } from './page-inputs.ts';

const INSIDE = 'node_modules/swagger-ui-dist/swagger-ui-es-bundle.js.LICENSE.txt';

/** Bundles the reference page of the APIs. */
export async function bundleDocs(): Promise<Bundle> {
  const { directory } = pages.docs;
  const built = await esbuild.build({
    ...pageOptions,
    format: 'esm',
    outdir: directory,
    entryPoints: { docs: `${directory}main.ts` },
  });
  const files = outputFiles(built);
  return {
    files,
    script: nameOf(files, /\.js$/),
    style: nameOf(files, /\.css$/),
    // The package is itself a bundle; a file of its own lists the licences of its content.
    notices: [
      await licenseNotices('.', Object.keys(built.metafile.inputs)),
      await readFile(INSIDE, 'utf8'),
    ].join('\n'),
  };
}
