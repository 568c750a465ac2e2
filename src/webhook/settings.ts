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
 * Reads the sources and forward addresses of the configuration module, which messages call `name`. Appends one line per
 * problem to `problems`; with problems the result is incomplete.
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
