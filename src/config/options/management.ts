import { expectedPassword, isPassword } from '../../core/passwords.ts';
import { accessLevels, endpointAccessPattern } from './access.ts';
import { builtInEndpoints, showDetailsChoices } from './endpoint-id.ts';
import { choice, count, inModule, list, path, port, someOf, text, toggle } from './option.ts';

const ownUrl = {
  placeholder: 'url',
  expected: 'an http or https URL, without credentials and query',
  pattern: { test: (given: string) => isUrl(given, false) },
};

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

/** The management door. */
export const management = {
  port: port({
    env: 'MANAGEMENT_PORT',
    default: 8080,
    help: 'Port of the management door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  basePath: path({
    env: 'MANAGEMENT_BASE_PATH',
    default: '/actuator',
    root: true,
    help: 'Base path of the management endpoints.',
  }),
  include: list({
    ...endpointNames,
    env: 'MANAGEMENT_INCLUDE',
    default: builtInEndpoints,
    help: 'Management endpoints to expose; * for all. If unset, the console is served too.',
  }),
  exclude: list({
    ...endpointNames,
    env: 'MANAGEMENT_EXCLUDE',
    default: [],
    help: 'Management endpoints not to expose, even if included; * for all.',
  }),
  access: choice({
    env: 'MANAGEMENT_ACCESS',
    unset:
      'none for heapdump, cpuprofile and shutdown, read-only for deliveries, unrestricted for all others',
    choices: accessLevels,
    help: 'Access to the exposed endpoints that management.endpointAccess does not name (none, read-only, unrestricted).',
  }),
  endpointAccess: list({
    env: 'MANAGEMENT_ENDPOINT_ACCESS',
    default: [],
    expected: 'a list like loggers=read-only,shutdown=unrestricted with none, read-only or unrestricted',
    pattern: endpointAccessPattern,
    help: 'Access to single endpoints, such as loggers=read-only,shutdown=unrestricted.',
  }),
  maxAccess: choice({
    env: 'MANAGEMENT_MAX_ACCESS',
    default: 'unrestricted',
    choices: accessLevels,
    help: 'Upper bound on access, for all endpoints (none, read-only, unrestricted).',
  }),
  user: text({
    env: 'MANAGEMENT_USER',
    unset: 'not secured',
    expected: 'a user name without ":" and control characters',
    pattern: /^[^:\p{Cc}]+$/u,
    help: 'User name for the management endpoints; requires management.password.',
    essential: true,
  }),
  password: text({
    env: 'MANAGEMENT_PASSWORD',
    unset: 'not secured',
    secret: true,
    expected: expectedPassword,
    pattern: { test: isPassword },
    help: 'Password of that user, or its hash as "portico hash-password" prints it.',
    essential: true,
  }),
  role: text({
    env: 'MANAGEMENT_ROLE',
    unset: 'any user may',
    help: 'Role that a user needs to read the management endpoints. The user above has it.',
  }),
  consoleRole: text({
    env: 'MANAGEMENT_CONSOLE_ROLE',
    unset: 'any user may act',
    help: 'Role that a user needs for the actions of the console.',
  }),
  maxFailedLogins: count({
    default: 10,
    help: 'Maximum failed log-ins per address and minute; 0 for no limit.',
  }),
  showDetails: choice({
    env: 'MANAGEMENT_SHOW_DETAILS',
    default: 'when-authorized',
    choices: showDetailsChoices,
    help: 'Visibility of the details in /health (never, when-authorized, always). Without users everybody is authorised.',
  }),
  diskThresholdBytes: count({
    default: 10_485_760,
    help: 'Free disk space below which health is DOWN, in bytes.',
  }),
  eventLoopThreshold: count({
    unit: 'ms',
    default: 1_000,
    min: 1,
    max: 3_600_000,
    help: 'p99 event loop delay, measured over the last ten to twenty seconds, above which health is DOWN, in milliseconds.',
  }),
  backlogThreshold: count({
    unit: 'ms',
    default: 3_600_000,
    min: 1,
    max: 31_536_000_000,
    help: 'Time that a webhook delivery may stay open, including retries, before health is DOWN, in milliseconds.',
  }),
  info: someOf({
    env: 'MANAGEMENT_INFO',
    default: ['build', 'git'],
    choices: infoParts,
    help: `Parts of /info (${infoParts.join(', ')}).`,
  }),
  showValues: choice({
    env: 'MANAGEMENT_SHOW_VALUES',
    default: 'never',
    choices: ['never', 'when-authorized', 'always'],
    help: 'Visibility of the values in /env and /configprops (never, when-authorized, always); secrets always stay hidden.',
  }),
  springBootAdmin: {
    url: text({
      env: 'SPRING_BOOT_ADMIN_URL',
      unset: 'not registered',
      secret: true,
      placeholder: 'url',
      expected: 'an http or https URL, without a query',
      pattern: { test: (given) => isUrl(given, true) },
      help: 'Spring Boot Admin server to register with; http://user:password@host if it asks for credentials.',
    }),
    name: text({
      env: 'SPRING_BOOT_ADMIN_NAME',
      unset: 'the name of the package',
      help: 'Name to show in the server.',
    }),
    managementUrl: text({
      ...ownUrl,
      env: 'SPRING_BOOT_ADMIN_MANAGEMENT_URL',
      unset: 'where the management door listens',
      help: 'URL at which the server reaches the management endpoints, with the base path.',
    }),
    serviceUrl: text({
      ...ownUrl,
      env: 'SPRING_BOOT_ADMIN_SERVICE_URL',
      unset: 'the root of the management URL',
      help: 'URL of the service that the server links to.',
    }),
    user: text({
      env: 'SPRING_BOOT_ADMIN_USER',
      unset: 'none',
      expected: 'a user name without ":" and control characters',
      pattern: /^[^:\p{Cc}]+$/u,
      help: 'User as which the server logs in to the management endpoints; Portico sends it the name.',
    }),
    password: text({
      env: 'SPRING_BOOT_ADMIN_PASSWORD',
      unset: 'none',
      secret: true,
      expected: 'a password without control characters',
      help: 'Password of that user; Portico sends it to the server.',
    }),
    jvmMetrics: toggle({
      env: 'SPRING_BOOT_ADMIN_JVM_METRICS',
      default: true,
      help: "Whether to add meters with the names of a JVM while registered, for the server's panels.",
    }),
  },
  healthChecks: inModule({
    shape: '{ [name]: (signal) => number }',
    help: 'Health checks by name. 0 is healthy, any other number is an error code; a check may also return `{ status, details }`. `{ check, timeout, ttl, critical }` sets how it runs: times in milliseconds, `critical: false` keeps its status out of the overall health.',
  }),
  healthGroups: inModule({
    shape: '{ [name]: { include: [check], exclude, showDetails } }',
    help: 'Health groups by name, read at `/health/<name>`; `*` stands for all checks. `liveness` and `readiness` are built in, also answer at `/livez` and `/readyz`, and can be replaced.',
  }),
  endpoints: inModule({
    shape: '[{ id, read: () => string }]',
    help: 'Custom management endpoints. GET sends the text or JSON that `read` returns, POST calls `write`, DELETE calls `delete`. `path: "name"` and `query: ["name"]` declare parameters, passed as `{ path, query, body }`; "?" marks an optional name.',
  }),
  users: inModule({
    shape: '[{ user, password, roles: [role] }]',
    help: 'Users of the management endpoints, in addition to or instead of management.user.',
  }),
} as const;
