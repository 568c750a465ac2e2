import { isUtf8 } from 'node:buffer';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { quote } from '../core/text.ts';
import { type Option, type Parsed, parseText } from './options/option.ts';
import { optionOf, type Settings } from './options/options.ts';
import { wholeField } from './schema/fields.ts';

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The text of a file, and its absolute path. */
interface SecretFile {
  readonly text: string;
  readonly path?: string;
}

/**
 * Reads a secret from a file and strips one trailing newline. `variable` names the reference in messages. A
 * relative path is resolved against `cwd`.
 */
export function readSecretFile(
  variable: string,
  path: string,
  cwd: string,
): SecretFile | { readonly problem: string } {
  if (path.trim() === '') return { problem: `${variable} is empty; unset it or name a file` };
  const named = `${variable} names the file ${quote(path)}`;
  try {
    const absolute = resolve(cwd, path);
    const bytes = readFileSync(absolute);
    if (!isUtf8(bytes)) return { problem: `${named}, which is not UTF-8 text` };
    return { text: bytes.toString().replace(/\r?\n$/, ''), path: absolute };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
    return { problem: `${named}, which cannot be read (${reason})` };
  }
}

/** The value of a secret option from the file that its variable `<NAME>_FILE` names. */
export function parseSecretFile(option: Option<unknown>, path: string, cwd: string): Parsed {
  const variable = `${option.env}_FILE`;
  const content = readSecretFile(variable, path, cwd);
  if ('problem' in content) return content;
  const place = { name: `the file that ${variable} names`, drop: `unset ${variable}` };
  return parseText(option, place, content.text);
}

const ONE = 'must be a secret, { env: NAME } or { file: PATH }';
const MANY = `${ONE}, or an array of at least one of these`;

const target = v.pipe(v.string(), v.nonEmpty());

/** A secret, or a reference to the variable or file that contains it. */
export const secretSchema = wholeField(
  v.union([v.string(), v.strictObject({ env: target }), v.strictObject({ file: target })]),
  ONE,
);

const listSchema = v.pipe(v.array(secretSchema, MANY), v.minLength(1, MANY));

type Secret = v.InferOutput<typeof secretSchema>;

/** One secret or several, so that a secret can be rotated. */
export const secretsSchema = v.pipe(
  v.lazy(
    (value): v.GenericSchema<Secret | Secret[]> =>
      value === undefined || Array.isArray(value) ? listSchema : secretSchema,
  ),
  v.metadata({ takes: v.union([secretSchema, listSchema]) }),
);

/** Polling interval of a file, in milliseconds. */
const INTERVAL = 1_000;

/**
 * Calls `readAgain` when a file may have changed, until the result is disposed of. It follows a symbolic
 * link, which Kubernetes replaces.
 */
export function watchedFile(path: string, readAgain: () => void): Disposable {
  watchFile(path, { interval: INTERVAL, persistent: false }, readAgain);
  // The file may have changed between the start and the first poll.
  const afterFirst = setTimeout(readAgain, INTERVAL).unref();
  return {
    [Symbol.dispose]() {
      clearTimeout(afterFirst);
      unwatchFile(path, readAgain);
    },
  };
}

/** A secret, its name in messages, and its file if it comes from one. */
type FoundSecret =
  | { readonly text: string; readonly name: string; readonly file?: string | undefined }
  | { readonly problem: string };

/** The secret that a reference at `path` points to. No message shows it. */
export function resolveSecret(secret: Secret, path: string, resolve: SecretResolver): FoundSecret {
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

/**
 * The value of `webhook.secret`. If it comes from the file that WEBHOOK_SECRET_FILE names, it follows changes
 * of that file, so that a secret can be rotated without a restart. An unreadable file or invalid value
 * changes nothing. `onChange` is called for each change, with undefined if the new value is in use, else with
 * the reason why the old one stays.
 */
export function liveSecrets(
  { settings, secretFile: path }: { readonly settings: Settings; readonly secretFile: string | undefined },
  onChange: (problem: string | undefined) => void,
) {
  let current = settings['webhook.secret'] ?? [];
  if (path === undefined) return { current, [Symbol.dispose]() {} };

  let problem: string | undefined;
  const readAgain = () => {
    const parsed = parseSecretFile(optionOf('webhook.secret'), path, '/');
    const before = problem;
    problem = 'problem' in parsed ? parsed.problem : undefined;
    const value = 'value' in parsed ? (parsed.value as readonly string[]) : current;
    if (problem === before && isDeepStrictEqual(value, current)) return;
    current = value;
    onChange(problem);
  };
  const watched = watchedFile(path, readAgain);
  return {
    get current() {
      return current;
    },
    [Symbol.dispose]() {
      watched[Symbol.dispose]();
    },
  };
}
