import type { InferOutput } from 'valibot';
import { isToken } from '../../http/access/bearer-token.ts';
import type { FixedToken } from '../../http/access/fixed-tokens.ts';
import { unknownScopes } from '../options/access/api-options.ts';
import { apiTokenSchema } from '../schema/api-tokens.ts';
import { sluggedOf } from '../schema/given.ts';
import { readObject } from '../schema/read-object.ts';
import { resolveSecret } from '../sources/resolve-secret.ts';
import type { SecretResolver } from '../sources/secret-resolver.ts';

/** Shorter secrets could be guessed, in characters. */
const MIN_SECRET = 16;

/** The tokens of the configuration, and the files that they were read from. */
export interface ReadTokens {
  readonly tokens: readonly FixedToken[];
  /** Their absolute paths. */
  readonly files: readonly string[];
}

/** What tokens are read with. */
interface TokenReading {
  /** What messages call them. */
  readonly path: string;
  readonly resolve: SecretResolver;
  /** The scopes that exist; undefined where that is not known, and then any scope may be. */
  readonly scopes: readonly string[] | undefined;
}

/**
 * Reads `api.tokens`. Appends one line per problem to `problems`, never with a secret in it; with problems the result is
 * incomplete.
 */
export function readApiTokens(
  value: unknown,
  { path, resolve, scopes: known }: TokenReading,
  problems: string[],
): ReadTokens {
  const files: string[] = [];
  const owners = new Map<string, string>();
  const tokens = sluggedOf({ value, path }, 'tokens', problems).flatMap((entry): FixedToken[] => {
    const token = readObject(apiTokenSchema, entry, problems);
    if (token === undefined) return [];
    const { scopes, expires } = token;
    if (known !== undefined) problems.push(...unknownScopes(`${entry.path}.scopes`, scopes, known));
    const secrets = secretsOf(token, `${entry.path}.secret`, { resolve, problems, files });
    for (const secret of secrets) {
      const owner = owners.get(secret);
      if (owner !== undefined)
        problems.push(`${entry.path} has the same secret as ${owner}; give each its own`);
      owners.set(secret, entry.path);
    }
    return [{ name: entry.name, secrets, scopes: new Set(scopes), expiresAt: expires }];
  });
  return { tokens, files };
}

function secretsOf(
  { secret }: InferOutput<typeof apiTokenSchema>,
  path: string,
  { resolve, problems, files }: { resolve: SecretResolver; problems: string[]; files: string[] },
): readonly string[] {
  const several = Array.isArray(secret);
  return [secret].flat().flatMap((one, index) => {
    const found = resolveSecret(one, several ? `${path}[${index}]` : path, resolve);
    if ('problem' in found) {
      problems.push(found.problem);
      return [];
    }
    if (found.file !== undefined) files.push(found.file);
    const problem = problemOf(found.text, found.name);
    if (problem !== undefined) problems.push(problem);
    return problem === undefined ? found.text : [];
  });
}

function problemOf(text: string, name: string): string | undefined {
  if (text.length >= MIN_SECRET && isToken(text)) return undefined;
  return `${name} must have at least ${MIN_SECRET} letters, digits and -._~+/ ("=" at its end), as Bearer tokens have`;
}
