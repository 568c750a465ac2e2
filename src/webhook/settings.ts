import type { ConfigCode } from '../config/schema/code.ts';
import type { SecretResolver } from '../config/sources/secret-resolver.ts';
import { type ForwardSettings, readForwards } from './forward/read-forwards.ts';
import { readSources } from './sources/read-sources.ts';
import type { SourceSettings } from './sources/source.ts';

/** The configured sources and forward addresses. */
export interface WebhookSettings {
  readonly sources: readonly SourceSettings[];
  readonly forwards: readonly ForwardSettings[];
}

/**
 * Reads the sources and forward addresses of the configuration; `name` is the module's name in messages. Errors are
 * added to `problems`, one line each; the result is then invalid.
 */
export function readWebhookSettings(
  { sources, forward }: Pick<ConfigCode, 'sources' | 'forward'>,
  name: string,
  resolve: SecretResolver,
  problems: string[],
): WebhookSettings {
  return {
    sources: readSources(sources, `${name}: webhook.sources`, resolve, problems),
    forwards: readForwards(forward, `${name}: webhook.forward`, resolve, problems),
  };
}
