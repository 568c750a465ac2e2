import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

/** The service's bundle is the text of a function with these parameters. */
export const PARAMETERS = 'module, require, importMeta';

interface LoadedService {
  readonly exports: typeof import('../src/app/serve.ts');
  readonly script: Script;
}

/**
 * Runs the bundle of the service with the code that `code-cache.ts` has compiled. V8 rejects code of another
 * version or for other flags, and then compiles each function when it is called.
 */
export function loadService(bundle: URL): LoadedService {
  const filename = fileURLToPath(bundle);
  // esbuild escapes everything beyond ASCII.
  const script = new Script(readFileSync(filename, 'latin1'), {
    // As a module's stack frames name it.
    filename: bundle.href,
    cachedData: readIfPresent(codeCacheOf(filename)),
  });
  const module = { exports: {} as LoadedService['exports'] };
  const importMeta = {
    url: bundle.href,
    filename,
    resolve: (name: string) => import.meta.resolve(name),
    import: (name: string) => import(name),
  };
  script.runInThisContext()(module, createRequire(bundle), importMeta);
  return { exports: module.exports, script };
}

/** The file with the compiled code of a bundle. */
export function codeCacheOf(bundle: string): string {
  return `${bundle}.cache`;
}

function readIfPresent(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
