import type { Environment } from './environment.ts';
import { readSecretFile, type SecretFile } from './secret-file.ts';

/** Resolves secrets that the configuration references. */
export interface SecretResolver {
  /** The value of an environment variable; undefined when it is not set. */
  env(name: string): string | undefined;
  /** What a file holds, or the problem; `at` names the reference in messages. */
  file(at: string, path: string): SecretFile | { readonly problem: string };
}

/** Resolves against environment variables, and against files relative to `cwd`. */
export function createSecretResolver(env: Environment, cwd: string): SecretResolver {
  return {
    env: (name) => (Object.hasOwn(env, name) ? env[name] : undefined),
    file: (at, path) => readSecretFile(at, path, cwd),
  };
}
