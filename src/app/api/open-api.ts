import { openGate } from '../../config/api/open-gate.ts';
import type { Config } from '../../config/load.ts';
import { settingsOf } from '../../config/options/options.ts';
import type { KnownSecrets } from '../../core/redaction.ts';
import type { ApiGate } from '../../http/access/api-gate.ts';
import type { Loggers } from '../../observability/log/loggers.ts';
import { managementUsers } from './management-users.ts';

/** Opens the gate of REST and GraphQL; undefined where the configuration asks for none. Throws ConfigError. */
export function openApi(
  config: Config,
  { loggers, secrets }: { readonly loggers: Loggers; readonly secrets: KnownSecrets },
): ApiGate | undefined {
  const { settings, code, file, resolveSecret } = config;
  return openGate(
    { ...settingsOf(settings, 'api'), tokens: code.apiTokens as never, users: managementUsers(config) },
    {
      resolve: resolveSecret,
      name: file ?? 'configuration',
      log: loggers.child('api'),
      onSecrets: (found) => secrets.add(found),
    },
  );
}
