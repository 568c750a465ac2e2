import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { quote } from '../../core/quote.ts';
import type { Option } from '../options/option.ts';
import { type Parsed, parseText } from '../options/parse.ts';

/** The text of a file, and its absolute path. */
export interface SecretFile {
  readonly text: string;
  readonly path?: string;
}

/**
 * Reads a secret from a file and strips one newline at its end. `variable` names the reference in messages.
 * A relative path is resolved against `cwd`.
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

/** The value of a secret option in the file that its variable `<NAME>_FILE` names. */
export function parseSecretFile(option: Option<unknown>, path: string, cwd: string): Parsed {
  const variable = `${option.env}_FILE`;
  const content = readSecretFile(variable, path, cwd);
  if ('problem' in content) return content;
  const place = { name: `the file that ${variable} names`, drop: `unset ${variable}` };
  return parseText(option, place, content.text);
}
