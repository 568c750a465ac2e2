import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: the types are checked by the compiler below.
  readonly spec: any;
}

/** The objects of a YAML text; throws where it is none. */
export function readManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text, { uniqueKeys: true }).map((document) => {
    for (const error of [...document.errors, ...document.warnings]) throw error;
    return document.toJS();
  });
}

/** What the types of Kubernetes' API say is wrong, unknown fields included; empty when nothing is. */
export async function typeProblems(manifests: readonly Manifest[]): Promise<string> {
  await using folder = await temporaryFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  const lines = manifests.map((manifest, i) => {
    const module = manifest.apiVersion === 'v1' ? 'core/v1' : manifest.apiVersion;
    return `export const m${i}: import('kubernetes-types/${module}').${manifest.kind} = ${JSON.stringify(manifest, null, 2)};`;
  });
  const file = join(folder.path, 'manifests.ts');
  writeFileSync(file, lines.join('\n'));
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--types', ''];
  try {
    execFileSync(
      process.execPath,
      [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, '--moduleResolution', 'bundler', file],
      { cwd: folder.path, stdio: 'pipe', encoding: 'utf8' },
    );
    return '';
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}
