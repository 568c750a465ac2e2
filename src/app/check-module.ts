import { readApiTokens } from '../config/api/read-tokens.ts';
import type { ModuleCheck } from '../config/load.ts';
import { knownScopes } from '../config/options/access/api-options.ts';
import { settingsOf } from '../config/options/options.ts';
import { readWebhookSettings } from '../webhook/settings.ts';
import { checkSchema } from './doors/graphql-door.ts';

/** Validates the parts of a configuration module that the doors read themselves. */
export const checkModule: ModuleCheck = (code, name, resolve, problems, options) => {
  readWebhookSettings(code, name, resolve, problems);
  checkSchema(code, name, resolve, problems, options);
  const { settings, broken } = options;
  const isKnown = (['api.readScope', 'api.writeScope', 'api.scopes'] as const).every(
    (key) => !broken.has(key),
  );
  const scopes = isKnown ? knownScopes(settingsOf(settings, 'api')) : undefined;
  readApiTokens(code.apiTokens, { path: `${name}: api.tokens`, resolve, scopes }, problems);
};
