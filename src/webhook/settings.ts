import type { ConfigCode } from '../config/schema/code.ts';
import type { SecretResolver } from '../config/sources/secret-resolver.ts';
import type { ForwardSettings } from './forward/forward-settings.ts';
import { readForwards } from './forward/read-forwards.ts';
import { readSources } from './sources/read-sources.ts';
import type { SourceSettings } from './sources/source.ts';

/** The signed sources and forward addresses of the webhook door. */
export interface WebhookSettings {
  readonly sources: readonly SourceSettings[];
  readonly forwards: readonly ForwardSettings[];
}

/**
 * Reads what the configuration module says of sources and forward addresses; `name` is how messages call the module.
 * What is wrong goes to `problems`, one line each; then the result is not to be used.
 */
export function readWebhookSettings(
  { sources, forward }: Pick<ConfigCode, 'sources' | 'forward'>,
  name: string,
  resolve: SecretResolver,
  problems: string[],
): WebhookSettings {
  return {
    sources: [...readSources(sources, `${name}: webhook.sources`, resolve, problems).values()],
    forwards: readForwards(forward, `${name}: webhook.forward`, resolve, problems),
  };
}
