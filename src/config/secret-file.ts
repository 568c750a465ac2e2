import { isUtf8 } from 'node:buffer';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { resolve } from 'node:path';
import * as v from 'valibot';
import { isPasswordHash, PasswordHashError, parsePasswordHash } from '../access/passwords.ts';
import { quote } from '../core/text.ts';
import { type Option, type Parsed, parseText } from './options/option.ts';
import { wholeField } from './schema/fields.ts';

/** The text of a file, and its absolute path. */
export interface SecretFile {
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

const PLAIN = /^\P{Cc}+$/u;

/** Completes "must be …" for a password. */
export const expectedPassword =
  'a password without control characters, or a whole $scrypt$ or $argon2id$ hash that takes at most 256 MiB and about a second (portico hash-password makes one)';

/** Whether a text is a plain password or a hash that Portico can verify. */
export function isPassword(text: string): boolean {
  if (!PLAIN.test(text)) return false;
  if (!isPasswordHash(text)) return true;
  try {
    parsePasswordHash(text);
    return true;
  } catch (error) {
    if (error instanceof PasswordHashError) return false;
    throw error;
  }
}
