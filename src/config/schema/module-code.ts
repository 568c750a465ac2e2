import type { CodeKey, ConfigCode } from './code.ts';
import { readEndpoints } from './custom-endpoint.ts';
import { readSetups } from './door-setup.ts';
import { readContext } from './graphql-code.ts';
import { readHealthChecks, readHealthGroups } from './health-code.ts';
import { readUsers } from './management-user.ts';
import { readHandlers } from './module-handlers.ts';

/** Reads the code of the configuration module `name`; what is wrong goes to `problems`, one line each, by its path. */
export function readModuleCode(
  code: ReadonlyMap<CodeKey, unknown>,
  name: string,
  problems: string[],
): ConfigCode {
  const at = (key: CodeKey) => ({ value: code.get(key), path: `${name}: ${key}` });
  const checks = at('management.healthChecks');
  return {
    healthChecks: readHealthChecks(checks, problems),
    healthGroups: readHealthGroups(at('management.healthGroups'), checks, problems),
    endpoints: readEndpoints(at('management.endpoints'), problems),
    users: readUsers(at('management.users'), problems),
    apiTokens: code.get('api.tokens'),
    sources: code.get('webhook.sources'),
    forward: code.get('webhook.forward'),
    alerts: code.get('webhook.alerts'),
    schedules: code.get('webhook.schedules'),
    handlers: readHandlers(at('webhook.handlers'), problems),
    graphql: {
      typeDefs: code.get('graphql.typeDefs'),
      resolvers: code.get('graphql.resolvers'),
      schema: code.get('graphql.schema'),
      context: readContext(at('graphql.context'), problems),
    },
    setups: readSetups(at, problems),
  };
}
