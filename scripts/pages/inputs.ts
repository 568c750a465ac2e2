import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { fileURLToPath } from 'node:url';

const packages = [
  'esbuild',
  'graphiql',
  'react',
  'react-dom',
  'graphql',
  'graphql-sse',
  'monaco-graphql',
  'monaco-editor',
  '@graphiql/react',
] as const;

/** Where the page's sources lie. */
export const pageDirectory = fileURLToPath(new URL('../src/graphql/graphiql/page/', import.meta.url));

const scriptDirectory = fileURLToPath(new URL('.', import.meta.url));

/** The versions of what the page is made from, as `name@version`; undefined when something is not installed. */
export function installedVersions(): readonly string[] | undefined {
  try {
    return packages.map((name) => {
      const file = findPackageJSON(name, import.meta.url);
      if (file === undefined) throw new Error(`${name} has no package.json.`);
      const description: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
      return `${name}@${description.version}`;
    });
  } catch {
    return undefined;
  }
}

/** A hash over the versions, the page's sources and the build's own scripts. */
export async function fingerprint(versions: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(versions.join('\n'));
  const scripts = (await readdir(scriptDirectory)).filter((name) => /graphiql|license/.test(name));
  const sources = await readdir(pageDirectory);
  const files = [
    ...scripts.map((name) => scriptDirectory + name),
    ...sources.map((name) => pageDirectory + name),
  ];
  for (const file of files.sort()) hash.update('\0').update(await readFile(file));
  return hash.digest('hex');
}
