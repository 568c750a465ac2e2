// Builds the query tool of the GraphQL door into build/graphiql/, once per change of what it is made from.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { storedName } from '../src/graphql/graphiql/content-coding.ts';
import { buildDirectory, type Manifest, readManifest } from '../src/graphql/graphiql/manifest.ts';
import type { EncodedFile } from './graphiql-encode.ts';
import { fingerprint, installedVersions } from './graphiql-inputs.ts';

function say(line: string): void {
  process.stdout.write(`GraphiQL: ${line}\n`);
}

function isUpToDate(inputs: string): boolean {
  const manifest = readManifest(buildDirectory);
  return (
    manifest?.inputs === inputs &&
    Object.entries(manifest.files)
      .flatMap(([name, { codings }]) => [name, ...codings.map((coding) => storedName(name, coding))])
      .every((name) => existsSync(new URL(name, buildDirectory)))
  );
}

/** Writes into a folder of its own and swaps it in whole, so that a running service never sees half a build. */
async function store(files: readonly EncodedFile[], notices: string, manifest: Manifest): Promise<void> {
  const target = fileURLToPath(buildDirectory).replace(/[\\/]$/, '');
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

async function build(inputs: string): Promise<void> {
  // Loaded only here, because it needs the development packages.
  const { bundle } = await import('./graphiql-bundle.ts');
  const { encodeFile } = await import('./graphiql-encode.ts');
  const { files, script, style, notices } = await bundle();
  const encoded = await Promise.all(files.map(encodeFile));
  const entries = encoded.map(({ name, entry }) => [name, entry] as const);
  await store(encoded, notices, { inputs, script, style, files: Object.fromEntries(entries) });
}

const versions = installedVersions();
if (versions === undefined) {
  say('not built, because the development packages are not installed; the page will say how to build it.');
} else {
  const inputs = await fingerprint(versions);
  if (isUpToDate(inputs)) {
    say('up to date.');
  } else {
    const start = performance.now();
    await build(inputs);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    say(`built in ${seconds} s.`);
  }
}
