import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';

interface PackageDescription {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** The folder of the package that a bundled file belongs to; undefined for Portico's files. */
function packageFolder(input: string): string | undefined {
  return /^(?:[a-z-]+:)?(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
}

const SEPARATOR = `\n${'-'.repeat(80)}\n\n`;

/** A package whose code is in a bundle. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** The packages that a text of notices covers. */
export function noticedPackages(notices: string): readonly BundledPackage[] {
  return notices.split(SEPARATOR).flatMap((notice) => {
    const [, name, version, license] = /^(\S+) (\d\S*) \((.*)\)$/m.exec(notice.split('\n\n')[0] ?? '') ?? [];
    return name === undefined || version === undefined || license === undefined
      ? []
      : [{ name, version, license }];
  });
}

async function noticeOf(folder: string): Promise<string> {
  const { name, version, license }: PackageDescription = JSON.parse(
    await readFile(`${folder}/package.json`, 'utf8'),
  );
  const licenseFile = (await readdir(folder)).find((file) => /^licen[cs]e(\.|$)/i.test(file));
  const text = licenseFile === undefined ? '' : await readFile(`${folder}/${licenseFile}`, 'utf8');
  return `${name} ${version} (${license ?? 'see below'})\n\n${text.trim()}\n`;
}

/**
 * The licences of the bundled packages, most of which require that copies include them. `inputs` are the
 * bundled files as paths relative to `root`.
 */
export async function licenseNotices(root: string, inputs: Iterable<string>): Promise<string> {
  const folders = new Set<string>();
  for (const input of inputs) {
    const folder = packageFolder(input);
    if (folder !== undefined) folders.add(resolve(root, folder));
  }
  const notices = await Promise.all([...folders].sort().map(noticeOf));
  return notices.join(SEPARATOR);
}
