import { readApiTokens } from '../config/api/read-tokens.ts';
import type { ModuleCheck } from '../config/load.ts';
import { readWebhookSettings } from '../webhook/settings.ts';
import { checkSchema } from './doors/graphql-door.ts';

/** Validates the parts of a configuration module that the doors read themselves. */
export const checkModule: ModuleCheck = (...given) => {
  readWebhookSettings(...given);
  checkSchema(...given);
  const [code, name, resolve, problems] = given;
  readApiTokens(code.apiTokens, `${name}: api.tokens`, resolve, problems);
};
