import type { InferOutput } from 'valibot';
import { quote } from '../../core/quote.ts';
import type { secretSchema } from '../schema/secret-reference.ts';
import type { SecretResolver } from './secret-resolver.ts';

/** A secret, its name in messages, and the file that it comes from, if it does. */
export type FoundSecret =
  | { readonly text: string; readonly name: string; readonly file?: string | undefined }
  | { readonly problem: string };

/** The secret that a reference at `path` means. No message shows it. */
export function resolveSecret(
  secret: InferOutput<typeof secretSchema>,
  path: string,
  resolve: SecretResolver,
): FoundSecret {
  if (typeof secret === 'string') return { text: secret, name: path };
  if ('env' in secret) {
    const text = resolve.env(secret.env);
    // A secret given by mistake in place of a name must not be shown.
    const shown = /^[A-Z][A-Z0-9_]*$/.test(secret.env) ? ` ${secret.env}` : '';
    const name = `${path} names the environment variable${shown}, which`;
    return text === undefined ? { problem: `${name} is not set` } : { text, name };
  }
  const read = resolve.file(path, secret.file);
  if ('problem' in read) return read;
  const name = `${path} names the file ${quote(secret.file)}, whose text`;
  return { text: read.text, name, file: read.path };
}
