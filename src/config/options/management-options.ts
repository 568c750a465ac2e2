import { accessLevels, endpointAccessPattern } from './access.ts';
import { builtInEndpoints } from './endpoint-id.ts';
import { showDetailsChoices } from './health-names.ts';
import { choice, count, duration, list, path, port, someOf, text } from './option.ts';
import { expectedPassword, isPassword } from './password-option.ts';
import { springBootAdminOptions } from './spring-boot-admin-options.ts';

/** The parts of the info endpoint. */
export const infoParts = ['build', 'git', 'node', 'os', 'process'] as const;

/** One of them. */
export type InfoPart = (typeof infoParts)[number];

const endpointNames = {
  expected: 'a list of endpoint names, or *',
  pattern: /^(?:\*|[a-zA-Z][a-zA-Z0-9.-]*)$/,
};

/** The options of the management door. */
export const managementOptions = {
  'management.port': port({
    env: 'MANAGEMENT_PORT',
    default: 8080,
    description: 'Port of the management door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  'management.basePath': path({
    env: 'MANAGEMENT_BASE_PATH',
    default: '/actuator',
    root: true,
    description: 'Base path of the management endpoints.',
  }),
  'management.include': list({
    ...endpointNames,
    env: 'MANAGEMENT_INCLUDE',
    default: builtInEndpoints,
    description: 'Management endpoints to expose; * for all. Unless it is set, the console is served too.',
  }),
  'management.exclude': list({
    ...endpointNames,
    env: 'MANAGEMENT_EXCLUDE',
    default: [],
    description: 'Management endpoints not to expose even when they are included; * for all.',
  }),
  'management.access': choice({
    env: 'MANAGEMENT_ACCESS',
    unset:
      'none for heapdump, cpuprofile and shutdown, read-only for deliveries, unrestricted for all others',
    choices: accessLevels,
    description:
      'Access to the exposed endpoints that management.endpointAccess does not name (none, read-only, unrestricted).',
  }),
  'management.endpointAccess': list({
    env: 'MANAGEMENT_ENDPOINT_ACCESS',
    default: [],
    expected: 'a list like loggers=read-only,shutdown=unrestricted with none, read-only or unrestricted',
    pattern: endpointAccessPattern,
    description: 'Access to single endpoints, such as loggers=read-only,shutdown=unrestricted.',
  }),
  'management.maxAccess': choice({
    env: 'MANAGEMENT_MAX_ACCESS',
    default: 'unrestricted',
    choices: accessLevels,
    description: 'Upper bound on access, for all endpoints (none, read-only, unrestricted).',
  }),
  'management.user': text({
    env: 'MANAGEMENT_USER',
    unset: 'not secured',
    expected: 'a user name without ":" and control characters',
    pattern: /^[^:\p{Cc}]+$/u,
    description: 'User who may log in to the management endpoints; requires management.password.',
  }),
  'management.password': text({
    env: 'MANAGEMENT_PASSWORD',
    unset: 'not secured',
    secret: true,
    expected: expectedPassword,
    pattern: { test: isPassword },
    description: 'Password of that user, or its hash as "portico hash-password" prints it.',
  }),
  'management.role': text({
    env: 'MANAGEMENT_ROLE',
    unset: 'any user may',
    description: 'Role that a user needs to read the management endpoints. The user above has it.',
  }),
  'management.consoleRole': text({
    env: 'MANAGEMENT_CONSOLE_ROLE',
    unset: 'any user may act',
    description: 'Role that a user needs for the actions of the console.',
  }),
  'management.maxFailedLogins': count({
    env: 'MANAGEMENT_MAX_FAILED_LOGINS',
    default: 10,
    description: 'Maximum failed log-ins per address and minute; 0 for no limit.',
  }),
  'management.showDetails': choice({
    env: 'MANAGEMENT_SHOW_DETAILS',
    default: 'when-authorized',
    choices: showDetailsChoices,
    description:
      'Visibility of the details in /health (never, when-authorized, always). Without users everybody is authorised.',
  }),
  'management.diskThresholdBytes': count({
    env: 'MANAGEMENT_DISK_THRESHOLD_BYTES',
    default: 10_485_760,
    description: 'Free disk space below which health is DOWN, in bytes.',
  }),
  'management.eventLoopThreshold': duration({
    env: 'MANAGEMENT_EVENT_LOOP_THRESHOLD',
    default: 1_000,
    min: 1,
    max: 3_600_000,
    description:
      'p99 event loop delay, measured over the last ten to twenty seconds, above which health is DOWN, in milliseconds.',
  }),
  'management.backlogThreshold': duration({
    env: 'MANAGEMENT_BACKLOG_THRESHOLD',
    default: 3_600_000,
    min: 1,
    max: 31_536_000_000,
    description:
      'Waiting time of an unhandled webhook delivery, retries included, above which health is DOWN, in milliseconds.',
  }),
  'management.info': someOf({
    env: 'MANAGEMENT_INFO',
    default: ['build', 'git'],
    choices: infoParts,
    description: `Parts of /info (${infoParts.join(', ')}).`,
  }),
  'management.showValues': choice({
    env: 'MANAGEMENT_SHOW_VALUES',
    default: 'never',
    choices: ['never', 'when-authorized', 'always'],
    description:
      'Visibility of the values in /env and /configprops (never, when-authorized, always); those of secrets stay hidden in any case.',
  }),
  ...springBootAdminOptions,
} as const;
