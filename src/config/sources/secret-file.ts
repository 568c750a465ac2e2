import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { quote } from '../../core/quote.ts';

/**
 * Reads a secret from a file and strips one newline at its end. `variable` names the reference in messages.
 * A relative path is resolved against `cwd`.
 */
export function readSecretFile(
  variable: string,
  path: string,
  cwd: string,
): { readonly text: string } | { readonly problem: string } {
  if (path.trim() === '') return { problem: `${variable} is empty; unset it or name a file` };
  const named = `${variable} names the file ${quote(path)}`;
  try {
    const bytes = readFileSync(resolve(cwd, path));
    if (!isUtf8(bytes)) return { problem: `${named}, which is not UTF-8 text` };
    return { text: bytes.toString().replace(/\r?\n$/, '') };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
    return { problem: `${named}, which cannot be read (${reason})` };
  }
}
