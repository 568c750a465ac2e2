// Builds the pages for browsers into build/, each once per change of what it is made from. Arguments name some of them.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { storedName } from '../src/http/page/content-coding.ts';
import { buildDirectory, type Manifest, readManifest } from '../src/http/page/manifest.ts';
import type { EncodedFile } from './pages/encode.ts';
import { fingerprint, installedVersions } from './pages/inputs.ts';
import { PAGES, type Page } from './pages/page.ts';

function isUpToDate(directory: URL, inputs: string): boolean {
  const manifest = readManifest(directory);
  return (
    manifest?.inputs === inputs &&
    Object.entries(manifest.files)
      .flatMap(([name, { codings }]) => [name, ...codings.map((coding) => storedName(name, coding))])
      .every((name) => existsSync(new URL(name, directory)))
  );
}

/** Writes into a folder of its own and swaps it in whole, so that a running service never sees half a build. */
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
    for (const { forms } of files) {
      for (const [name, contents] of forms) await writeFile(`${draft}/${name}`, contents);
    }
    await writeFile(`${draft}/LICENSES.txt`, notices);
    await writeFile(`${draft}/manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`);
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Resolves to what was done. */
async function build(page: Page): Promise<string> {
  const versions = installedVersions(page);
  if (versions === undefined) return 'not built, because the development packages are not installed';
  const directory = buildDirectory(page.name);
  const inputs = await fingerprint(page, versions);
  if (isUpToDate(directory, inputs)) return 'up to date';
  const start = performance.now();
  const { encodeFile } = await import('./pages/encode.ts');
  const { files, script, style, notices } = await page.bundle();
  const encoded = await Promise.all(files.map(encodeFile));
  const entries = encoded.map(({ name, entry }) => [name, entry] as const);
  await store(directory, encoded, notices, { inputs, script, style, files: Object.fromEntries(entries) });
  return `built in ${((performance.now() - start) / 1000).toFixed(1)} s`;
}

const wanted = process.argv.slice(2);
for (const page of PAGES) {
  if (wanted.length > 0 && !wanted.includes(page.name)) continue;
  process.stdout.write(`${page.name}: ${await build(page)}.\n`);
}
