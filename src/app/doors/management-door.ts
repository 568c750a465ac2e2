import type { FastifyInstance } from 'fastify';
import type { InfoPart } from '../../config/options/management-options.ts';
import { type Settings, settingsOf } from '../../config/options/options.ts';
import { addFrontPage } from '../../http/front-page.ts';
import { management } from '../../management/management.ts';
import { managementErrors, NOT_FOUND, refuse } from '../../management/management-errors.ts';
import type { SpringBootAdminOptions } from '../../management/spring-boot-admin/spring-boot-admin.ts';
import { HealthRegistry } from '../../observability/health/registry.ts';
import { managementUsers } from '../api/management-users.ts';
import { readBuildInfo } from '../build-info.ts';
import { consoleView } from '../console/console-parts.ts';
import { includeList } from '../exposure-rules.ts';
import { healthChecks } from '../health-checks.ts';
import { healthWatch } from '../health-watch.ts';
import { managementViews } from '../management-views.ts';
import { readPackageInfo } from '../package-info.ts';
import type { Parts } from '../parts.ts';

/** Wires the management door, last of all: it shows the other doors. `webhookSecrets` are those of /webhook, if it is open. */
export function openManagementDoor(parts: Parts, webhookSecrets?: () => readonly string[]): void {
  const { config, readiness, metrics, listener } = parts;
  const { settings, code } = config;
  const app = listener('management', managementErrors);
  const basePath = settings['management.basePath'];
  // contract 5: at the root everything is the endpoints' own
  if (basePath !== '/') addOutside(app, basePath);
  app.register(management, {
    ...managementViews(parts, {
      include: includeList(config),
      exclude: settings['management.exclude'],
    }),
    console: consoleView(parts, webhookSecrets),
    basePath,
    showValues: settings['management.showValues'],
    users: managementUsers(config),
    role: settings['management.role'],
    maxFailedLogins: settings['management.maxFailedLogins'],
    ...packageInfo(settings['management.info']),
    health: new HealthRegistry(healthChecks(parts), { onChecked: healthWatch(parts) }),
    healthGroups: code.healthGroups,
    showDetails: settings['management.showDetails'],
    readiness,
    metrics,
    environment: { activeProfiles: settings.profiles, propertySources: config.sources },
    endpoints: code.endpoints,
    springBootAdmin: springBootAdmin(settings),
  });
}

/** What is outside the base path. */
function addOutside(app: FastifyInstance, basePath: string): void {
  app.setNotFoundHandler((request, reply) => refuse(NOT_FOUND, request, reply));
  addFrontPage(app, {
    title: 'Portico: management',
    about: 'The management door: health, metrics and the inside of the service.',
    paths: {
      [basePath]: 'The management endpoints.',
      '/livez': 'Whether the process lives, for an orchestrator.',
      '/readyz': 'Whether it takes requests, for a balancer.',
    },
  });
}

function springBootAdmin(settings: Settings): SpringBootAdminOptions | undefined {
  const { url, ...options } = settingsOf(settings, 'management.springBootAdmin');
  return url === undefined ? undefined : { url, ...options };
}

/** What /info shows of the program. */
function packageInfo(info: readonly InfoPart[]) {
  const { name, version } = readPackageInfo();
  const { time, git } = readBuildInfo();
  return { build: { name, artifact: name, version, time }, git, info };
}
