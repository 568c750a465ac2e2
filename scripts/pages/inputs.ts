import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { join } from 'node:path';
import type { Page } from './page.ts';

/** The versions of what a page is made from, as `name@version`; undefined when something is not installed. */
export function installedVersions({ packages }: Page): readonly string[] | undefined {
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
export async function fingerprint(page: Page, versions: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(versions.join('\n'));
  const files = [...(await filesBelow(import.meta.dirname)), ...(await filesBelow(page.folder))];
  for (const file of files.sort()) hash.update('\0').update(await readFile(file));
  return hash.digest('hex');
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
