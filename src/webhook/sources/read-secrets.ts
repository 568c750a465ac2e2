import * as v from 'valibot';
import { type Given, itemsOf } from '../../config/schema/given.ts';
import { secretSchema } from '../../config/schema/secret-reference.ts';
import type { SchemeName } from '../../config/schema/webhook-sources.ts';
import { resolveSecret } from '../../config/sources/resolve-secret.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
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
