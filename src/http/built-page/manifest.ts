import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import type { ContentCoding } from './content-coding.ts';

/** One file of the built page; its coded forms lie next to it as `<name>.br` and `<name>.gz`. */
export interface BuiltFile {
  readonly contentType: string;
  readonly codings: readonly ContentCoding[];
}

/** What `npm run build:pages` leaves in `manifest.json`. */
export interface Manifest {
  /** Fingerprint of everything that the build was made from. */
  readonly inputs: string;
  /** File name of the page's module script. */
  readonly script: string;
  /** File name of the page's style sheet. */
  readonly style: string;
  /** Every served file by its name. */
  readonly files: Readonly<Record<string, BuiltFile>>;
}

/** Where a built page lies, by its name. */
export function builtPage(name: string): URL {
  return new URL(`build/${name}/`, PACKAGE_ROOT);
}

function isManifest(value: unknown): value is Manifest {
  return (
    typeof value === 'object' &&
    value !== null &&
    'script' in value &&
    'style' in value &&
    'files' in value &&
    typeof value.files === 'object'
  );
}

/** Reads the manifest of a build; undefined when there is no whole build in `directory`. */
export function readManifest(directory: URL): Manifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(new URL('manifest.json', directory), 'utf8'));
    return isManifest(manifest) ? manifest : undefined;
  } catch {
    // The service does not need its pages: without a build each says how to make one.
    return undefined;
  }
}
