import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/** The environment of a worker thread: it takes the directory of the compile cache from there only. */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir();
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) };
}
