// Builds the pages of the doors into build/<name>/, and only those whose inputs have changed.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { builtPage, type Manifest, readManifest, storedName } from '../src/http/pages.ts';
import type { Bundle } from './page-bundle.ts';
import type { EncodedFile } from './page-encode.ts';
import { fingerprint, installedVersions, type PageName, pages } from './page-inputs.ts';

/** Each bundler is loaded only when needed, because it needs the development packages. */
const BUNDLES: Readonly<Record<PageName, () => Promise<Bundle>>> = {
  graphiql: async () => (await import('./graphiql-bundle.ts')).bundleGraphiql(),
  console: async () => (await import('./console-bundle.ts')).bundleConsole('console', 'main.tsx'),
  portal: async () => (await import('./console-bundle.ts')).bundleConsole('portal', 'portal.tsx'),
  docs: async () => (await import('./docs-bundle.ts')).bundleDocs(),
};

function say(page: PageName, line: string): void {
  process.stdout.write(`${page}: ${line}\n`);
}

function isUpToDate(directory: URL, inputs: string): boolean {
  const manifest = readManifest(directory);
  return (
    manifest?.inputs === inputs &&
    Object.entries(manifest.files).every(([name, file]) =>
      existsSync(new URL(storedName(name, file), directory)),
    )
  );
}

/** Writes into a temporary folder and swaps it in, so that a running service never sees a partial build. */
async function store(
  directory: URL,
  files: readonly EncodedFile[],
  notices: string,
  manifest: Manifest,
): Promise<void> {
  const target = fileURLToPath(directory).replace(/[\\/]$/, '');
  const draft = `${target}.${process.pid}`;
  try {
    await mkdir(draft, { recursive: true });
    for (const { name, entry, stored } of files)
      await writeFile(`${draft}/${storedName(name, entry)}`, stored);
    await writeFile(`${draft}/LICENSES.txt`, notices);
    await writeFile(`${draft}/manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`);
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function build(page: PageName, inputs: string): Promise<void> {
  const { encodeFile } = await import('./page-encode.ts');
  const { files, script, style, notices } = await BUNDLES[page]();
  const encoded = await Promise.all(files.map(encodeFile));
  const entries = encoded.map(({ name, entry }) => [name, entry] as const);
  await store(builtPage(page), encoded, notices, {
    inputs,
    script,
    style,
    files: Object.fromEntries(entries),
  });
}

for (const page of Object.keys(pages) as PageName[]) {
  const versions = installedVersions(page);
  if (versions === undefined) {
    say(
      page,
      'not built, because the development packages are not installed; the page will say how to build it.',
    );
    continue;
  }
  const inputs = await fingerprint(page, versions);
  if (isUpToDate(builtPage(page), inputs)) {
    say(page, 'up to date.');
    continue;
  }
  const start = performance.now();
  await build(page, inputs);
  say(page, `built in ${((performance.now() - start) / 1000).toFixed(1)} s.`);
}
