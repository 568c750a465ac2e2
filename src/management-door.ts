import type { Config } from './config/load.ts';
import { optionOf } from './config/options.ts';
import type { Database } from './database/database.ts';
import { managementErrors } from './management/error-format.ts';
import { management } from './management/management.ts';
import { codeCheck } from './observability/code-check.ts';
import type { HealthIndicator } from './observability/health.ts';
import { HealthRegistry } from './observability/health-registry.ts';
import { readPackageInfo } from './package-info.ts';
import type { Parts } from './parts.ts';

/** Wires the management door, last of all: it shows what the other doors have brought with them. */
export function openManagementDoor(parts: Parts): void {
  const { config, readiness, metrics, listener } = parts;
  const { settings, code } = config;
  const { name, version } = readPackageInfo();
  const database = parts.openedDatabase();
  listener('management', managementErrors).register(management, {
    basePath: settings['management.basePath'],
    include: includeList(config),
    exclude: settings['management.exclude'],
    showValues: settings['management.showValues'],
    users: users(config),
    role: settings['management.role'],
    build: { name, artifact: name, version },
    health: new HealthRegistry([
      ...(database === undefined ? [] : [databaseCheck(database)]),
      ...parts.healthChecks,
      ...[...code.healthChecks].map(([id, check]) => codeCheck(id, check)),
    ]),
    readiness,
    metrics,
    environment: { activeProfiles: settings.profiles, propertySources: config.sources },
    endpoints: code.endpoints,
  });
}

/** The default include list covers the endpoints that the user registered; a list of the user's own is taken as it is. */
function includeList({ settings, code }: Config): readonly string[] {
  const include = settings['management.include'];
  const isDefault = include === optionOf('management.include').default;
  return isDefault ? [...include, ...code.endpoints.map(({ id }) => id)] : include;
}

/** The users of the management door: the configured one has the required role (contract 5). */
function users({ settings, code }: Config) {
  const { 'management.user': user, 'management.password': password, 'management.role': role } = settings;
  if (user === undefined || password === undefined) return code.users;
  return [{ user, password, roles: role === undefined ? [] : [role] }, ...code.users];
}

function databaseCheck(database: Database): HealthIndicator {
  return {
    name: 'db',
    async check() {
      await database.ping();
      return { status: 'UP' };
    },
  };
}
