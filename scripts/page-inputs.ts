import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const graphiql = [
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

const react = ['esbuild', 'react', 'react-dom', 'uplot'] as const;

const folder = (path: string) => fileURLToPath(new URL(`../${path}/`, import.meta.url));

/** The pages by name: the folder of their sources, and the packages in them. */
export const pages = {
  graphiql: { directory: folder('src/graphql/graphiql/page'), packages: graphiql },
  console: { directory: folder('packages/console'), packages: react },
  portal: { directory: folder('packages/console'), packages: react },
  docs: { directory: folder('src/management/docs-page/page'), packages: ['esbuild', 'swagger-ui-dist'] },
} as const;

/** The name of a page. */
export type PageName = keyof typeof pages;

const scriptDirectory = fileURLToPath(new URL('.', import.meta.url));

/** The versions of the packages in a page, as `name@version`; undefined if one is not installed. */
export function installedVersions(page: PageName): readonly string[] | undefined {
  try {
    return pages[page].packages.map((name) => {
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
export async function fingerprint(page: PageName, versions: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(versions.join('\n'));
  const scripts = (await readdir(scriptDirectory)).filter((name) => /page|bundle|license/.test(name));
  const { directory } = pages[page];
  const sources = await readdir(directory, { withFileTypes: true, recursive: true });
  const files = [
    ...scripts.map((name) => scriptDirectory + name),
    ...sources.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name)),
  ];
  for (const file of files.sort()) hash.update('\0').update(await readFile(file));
  return hash.digest('hex');
}
