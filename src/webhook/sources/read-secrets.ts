import * as v from 'valibot';
import { type Given, itemsOf } from '../../config/schema/given.ts';
import { secretSchema } from '../../config/schema/secret-reference.ts';
import type { SchemeName } from '../../config/schema/webhook-sources.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { quote } from '../../core/quote.ts';
import { isRecord } from '../../core/record.ts';
import { standardKeyProblem } from '../schemes/standard-keys.ts';
import { textSecretProblem } from '../schemes/text-secret.ts';

/**
 * The secrets of a source or forward address, with references resolved. Appends problems by their path, never with a
 * secret in them; skips what the schema refuses. Without a scheme, secrets are resolved but not checked.
 */
export function readSecrets(
  owner: Given,
  scheme: SchemeName | undefined,
  resolve: SecretResolver,
  problems: string[],
): readonly string[] {
  const value = isRecord(owner.value) ? owner.value.secrets : undefined;
  const given = { value, path: `${owner.path}.secrets` };
  const entries = Array.isArray(value) ? itemsOf(given, problems) : [given];
  return entries.flatMap((entry) => {
    if (!v.is(secretSchema, entry.value)) return [];
    const found = resolveSecret(v.parse(secretSchema, entry.value), entry.path, resolve);
    if ('problem' in found) {
      problems.push(found.problem);
      return [];
    }
    const problem = scheme === undefined ? undefined : secretProblem(scheme, found.text);
    if (problem !== undefined) problems.push(`${found.name} ${problem}`);
    return problem === undefined ? found.text : [];
  });
}

/** Why a text is not a valid secret of a scheme, as the end of a sentence that starts with its name; undefined: it is. */
export function secretProblem(scheme: SchemeName, secret: string): string | undefined {
  return scheme === 'standard' ? standardKeyProblem(secret) : textSecretProblem(secret);
}

/** A secret and its name in messages. */
type Found = { readonly text: string; readonly name: string } | { readonly problem: string };

function resolveSecret(
  secret: v.InferOutput<typeof secretSchema>,
  path: string,
  resolve: SecretResolver,
): Found {
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
  return { text: read.text, name: `${path} names the file ${quote(secret.file)}, whose text` };
}
