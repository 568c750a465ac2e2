import { openGate } from '../../config/api/open-gate.ts';
import type { Config } from '../../config/load.ts';
import { settingsOf } from '../../config/options/options.ts';
import type { ApiTokensConfig } from '../../config/schema/api-tokens.ts';
import type { KnownSecrets } from '../../core/redaction.ts';
import type { Database } from '../../database/database.ts';
import type { ApiGate } from '../../http/access/api-gate.ts';
import type { Audit } from '../../observability/audit/audit.ts';
import type { Loggers } from '../../observability/log/loggers.ts';
import { auditRefusals } from '../observe/audit.ts';
import { managementUsers } from './management-users.ts';

interface ApiParts {
  readonly loggers: Loggers;
  readonly secrets: KnownSecrets;
  /** Whose tokens come in too; undefined where no door needs a database. */
  readonly database: Database | undefined;
  readonly audit: Audit | undefined;
}

/** Opens the gate of REST and GraphQL; undefined where the configuration asks for none. Rejects with ConfigError. */
export async function openApi(
  config: Config,
  { loggers, secrets, database, audit }: ApiParts,
): Promise<ApiGate | undefined> {
  const { settings, code, file, resolveSecret } = config;
  return openGate(
    {
      ...settingsOf(settings, 'api'),
      jwt: settingsOf(settings, 'api.jwt'),
      tokens: code.apiTokens as ApiTokensConfig | undefined,
      users: managementUsers(config),
      stored: database?.apiTokens,
      writeDelay: database?.writeDelay,
    },
    {
      resolve: resolveSecret,
      name: file ?? 'configuration',
      // A logger that nobody uses would be in the list of loggers.
      get log() {
        return loggers.child('api');
      },
      onSecrets: (found) => secrets.add(found),
      // REST has a status for each of its refusals.
      onRefused: auditRefusals(audit, 'graphql'),
    },
  );
}
