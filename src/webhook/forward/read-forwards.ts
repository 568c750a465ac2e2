import type { InferOutput } from 'valibot';
import { sluggedOf } from '../../config/schema/given.ts';
import { readObject } from '../../config/schema/read-object.ts';
import { checkFilter } from '../../config/schema/webhook-condition.ts';
import { forwardSchema } from '../../config/schema/webhook-forwards.ts';
import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { readSecrets } from '../sources/read-secrets.ts';
import { isPrivateHost } from './guarded-lookup.ts';
import { checkTransform } from './transform-data.ts';

/** A forward address, validated. Times are in milliseconds. */
export interface ForwardSettings
  extends Readonly<Omit<InferOutput<typeof forwardSchema>, 'secrets' | 'events'>> {
  readonly name: string;
  /** The events to forward; undefined: all, or none where `users` names changes. */
  readonly events?: readonly string[] | undefined;
  /** Standard Webhooks secrets to sign with; none: not signed. */
  readonly secrets: readonly string[];
}

/**
 * Reads `webhook.forward`, which messages call `path`: by name a URL, or an object with a URL. Appends one line per
 * problem to `problems`; with problems the result is incomplete.
 */
export function readForwards(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
): readonly ForwardSettings[] {
  return sluggedOf({ value, path }, 'addresses', problems).flatMap(({ name, ...entry }) => {
    const given = typeof entry.value === 'string' ? { ...entry, value: { url: entry.value } } : entry;
    const forward = readObject(forwardSchema, given, problems);
    checkFilter(given, problems);
    checkTransform(given, problems);
    const secrets = readSecrets(given, 'standard', resolve, problems);
    if (forward === undefined) return [];
    const { hostname } = forward.url;
    if (!forward.allowPrivate && isPrivateHost(hostname)) {
      problems.push(
        `${entry.path}.url is the private address ${hostname}; set allowPrivate if that is intended`,
      );
    }
    return { ...forward, name, secrets };
  });
}
