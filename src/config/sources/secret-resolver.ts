import type { Environment } from './environment.ts';
import { readSecretFile } from './secret-file.ts';

/** Finds the secrets that the configuration only names. */
export interface SecretResolver {
  /** The value of an environment variable; undefined when it is not set. */
  env(name: string): string | undefined;
  /** The text of a file, or why there is none; `at` is how messages call the reference. */
  file(at: string, path: string): { readonly text: string } | { readonly problem: string };
}

/** Looks in the variables of a process, and in files relative to its folder. */
export function createSecretResolver(env: Environment, cwd: string): SecretResolver {
  return {
    env: (name) => (Object.hasOwn(env, name) ? env[name] : undefined),
    file: (at, path) => readSecretFile(at, path, cwd),
  };
}
