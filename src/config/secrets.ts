import type { InferOutput } from 'valibot';
import { quote } from '../core/text.ts';
import { optionKeys, optionOf } from './options/options.ts';
import { readSecretFile, type SecretFile, type secretSchema } from './secret-file.ts';
import type { Environment, Reading } from './sources.ts';

/** A secret, its name in messages, and its file if it comes from one. */
type FoundSecret =
  | { readonly text: string; readonly name: string; readonly file?: string | undefined }
  | { readonly problem: string };

/** The secret that a reference at `path` points to. No message shows it. */
export function resolveSecret(
  secret: InferOutput<typeof secretSchema>,
  path: string,
  resolve: SecretResolver,
): FoundSecret {
  if (typeof secret === 'string') return { text: secret, name: path };
  if ('env' in secret) {
    const text = resolve.env(secret.env);
    // The user may have written a secret in place of the variable's name; it must not be shown.
    const shown = /^[A-Z][A-Z0-9_]*$/.test(secret.env) ? ` ${secret.env}` : '';
    const name = `${path} names the environment variable${shown}, which`;
    return text === undefined ? { problem: `${name} is not set` } : { text, name };
  }
  const read = resolve.file(path, secret.file);
  if ('problem' in read) return read;
  const name = `${path} names the file ${quote(secret.file)}, whose text`;
  return { text: read.text, name, file: read.path };
}

/** Resolves secrets that the configuration references. */
export interface SecretResolver {
  /** The value of an environment variable; undefined if it is not set. */
  env(name: string): string | undefined;
  /** The content of a file, or the problem; `at` names the reference in messages. */
  file(at: string, path: string): SecretFile | { readonly problem: string };
}

/** Resolves environment variables, and files relative to `cwd`. */
export function createSecretResolver(env: Environment, cwd: string): SecretResolver {
  return {
    env: (name) => (Object.hasOwn(env, name) ? env[name] : undefined),
    file: (at, path) => readSecretFile(at, path, cwd),
  };
}

const secretKeys = optionKeys.filter((key) => optionOf(key).secret);

/** The values of all secret options in the sources, valid or not, longest first. */
export function secretTexts(env: Environment, readings: readonly Reading[]): readonly string[] {
  const values: unknown[] = secretKeys.flatMap((key) => [
    env[optionOf(key).env],
    ...readings.flatMap((reading) => reading.found.get(key)?.value),
  ]);
  const texts = values.filter((value) => typeof value === 'string' && value.trim() !== '') as string[];
  return texts.sort((a, b) => b.length - a.length);
}
