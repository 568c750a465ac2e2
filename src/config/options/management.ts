import { expectedPassword, isPassword } from '../secret-file.ts';
import { accessLevels, endpointAccessPattern } from './access.ts';
import { builtInEndpoints, showDetailsChoices } from './endpoint-id.ts';
import { choice, count, duration, list, path, port, someOf, text, toggle } from './option.ts';

const ownUrl = {
  placeholder: 'url',
  expected: 'an http or https URL, without credentials and query',
  pattern: { test: (given: string) => isUrl(given, false) },
};

/** The options of the registration with a Spring Boot Admin server. */
export const springBootAdminOptions = {
  'management.springBootAdmin.url': text({
    env: 'SPRING_BOOT_ADMIN_URL',
    unset: 'not registered',
    secret: true,
    placeholder: 'url',
    expected: 'an http or https URL, without a query',
    pattern: { test: (given) => isUrl(given, true) },
    description:
      'Spring Boot Admin server to register with; http://user:password@host if it asks for credentials.',
  }),
  'management.springBootAdmin.name': text({
    env: 'SPRING_BOOT_ADMIN_NAME',
    unset: 'the name of the package',
    description: 'Name to show in the server.',
  }),
  'management.springBootAdmin.managementUrl': text({
    ...ownUrl,
    env: 'SPRING_BOOT_ADMIN_MANAGEMENT_URL',
    unset: 'where the management door listens',
    description: 'URL at which the server reaches the management endpoints, with the base path.',
  }),
  'management.springBootAdmin.serviceUrl': text({
    ...ownUrl,
    env: 'SPRING_BOOT_ADMIN_SERVICE_URL',
    unset: 'the root of the management URL',
    description: 'URL of the service that the server links to.',
  }),
  'management.springBootAdmin.user': text({
    env: 'SPRING_BOOT_ADMIN_USER',
    unset: 'none',
    expected: 'a user name without ":" and control characters',
    pattern: /^[^:\p{Cc}]+$/u,
    description: 'User as which the server logs in to the management endpoints; Portico sends it the name.',
  }),
  'management.springBootAdmin.password': text({
    env: 'SPRING_BOOT_ADMIN_PASSWORD',
    unset: 'none',
    secret: true,
    expected: 'a password without control characters',
    description: 'Password of that user; Portico sends it to the server.',
  }),
  'management.springBootAdmin.jvmMetrics': toggle({
    env: 'SPRING_BOOT_ADMIN_JVM_METRICS',
    default: true,
    description: "Whether to add meters with the names of a JVM while registered, for the server's panels.",
  }),
} as const;

function isUrl(text: string, withCredentials: boolean): boolean {
  // URL parsers repair these silently, which is never what the user intended.
  if (/[\s\p{Cc}\\?#]/u.test(text) || !/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return withCredentials || (username === '' && password === '');
}

/** The units of an interval, in milliseconds. */
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a valid interval. */
export function intervalOf(text: string): number {
  return Number(text.slice(0, -1)) * (UNITS[text.slice(-1)] ?? Number.NaN);
}

/** The parts of the info endpoint. */
export const infoParts = ['build', 'git', 'node', 'os', 'process'] as const;

/** A part of the info endpoint. */
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
    description: 'Management endpoints to expose; * for all. If unset, the console is served too.',
  }),
  'management.exclude': list({
    ...endpointNames,
    env: 'MANAGEMENT_EXCLUDE',
    default: [],
    description: 'Management endpoints not to expose, even if included; * for all.',
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
    description: 'User name for the management endpoints; requires management.password.',
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
  'limits.management.maxFailedLogins': count({
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
  'limits.management.diskThresholdBytes': count({
    default: 10_485_760,
    description: 'Free disk space below which health is DOWN, in bytes.',
  }),
  'limits.management.eventLoopThreshold': duration({
    default: 1_000,
    min: 1,
    max: 3_600_000,
    description:
      'p99 event loop delay, measured over the last ten to twenty seconds, above which health is DOWN, in milliseconds.',
  }),
  'limits.management.backlogThreshold': duration({
    default: 3_600_000,
    min: 1,
    max: 31_536_000_000,
    description:
      'Time that a webhook delivery may stay open, including retries, before health is DOWN, in milliseconds.',
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
      'Visibility of the values in /env and /configprops (never, when-authorized, always); secrets always stay hidden.',
  }),
  ...springBootAdminOptions,
} as const;
