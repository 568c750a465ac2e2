import type { Line, OddRequests } from '../support/odd-requests.ts';
import { DELIVERY } from '../support/transport-twins.ts';
import { brokenBodies, JSON_LABEL } from './door-requests.ts';

/** Every endpoint, with all that it can do. */
export const everything = {
  MANAGEMENT_INCLUDE: '*',
  MANAGEMENT_ENDPOINT_ACCESS:
    'deliveries=unrestricted,shutdown=unrestricted,heapdump=unrestricted,cpuprofile=unrestricted',
  MANAGEMENT_INFO: 'build,git,node,os,process',
  // A busy machine makes nothing DOWN.
  MANAGEMENT_EVENT_LOOP_THRESHOLD: '3600000',
};

/** An endpoint of a configuration module, in source text. */
export const customEndpoint = `{
  id: 'mine',
  path: 'name?',
  query: ['a?'],
  read({ path, query }) {
    if (path.name === 'fails') throw new Error('on purpose');
    if (path.name === 'nothing') return undefined;
    if (path.name === 'bytes') return Buffer.from([0xe4, 0xff]);
    return path.name === 'late' ? Promise.resolve('l\u00e4te') : { path, query };
  },
  write: ({ body }) => body,
  delete() {},
}`;

const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE'];
const accepts = [
  'text/html',
  'application/json',
  '*/*;q=0',
  'text/plain',
  'application/openmetrics-text',
].map((type) => `Accept: ${type}`);
const under = (path: string, names: readonly string[]) => names.map((name) => `/actuator${path}${name}`);

/** Reads whose replies are the same at every moment. */
export const lastingReads: OddRequests = {
  methods,
  targets: [
    ...['/livez', '/readyz', '/livez/', '/livez?x', '/lives', '/readyz/x'],
    ...under('', ['', '/', '?', '/nothing', '/nothing/below', '/../livez', '/%6c']),
    ...under('/health/', [
      'liveness',
      'readiness',
      'db',
      'writer',
      'liveness/livenessState',
      'no',
      '',
      'db/x',
    ]),
    ...under('/metrics', ['', '/', '/no', '/webhook.refused?tag=x', '/%77ebhook.unhandled']),
    ...under('/env', [
      '',
      '/PORT',
      '/no',
      '/%50ORT',
      '/PORT?x',
      '/',
      '?pattern=port',
      '?pattern=a&pattern=b',
    ]),
    ...under('/configprops', ['', '/rest', '/no', '/', '?x']),
    ...under('/mappings', ['', '/x', '?x']),
    ...under('/loggers', ['', '/inbox', '/no', '/%69nbox', '/inbox/', '/inbox?x']),
    ...under('/mine', [
      '',
      '?a=1',
      '?a=1&a=2',
      '/x',
      '/',
      '/fails',
      '/nothing',
      '/bytes',
      '/late',
      '/%C3%A4',
    ]),
    ...under('/deliveries', ['?limit=0', '?nonsense', '/no', '/no?x']),
    ...under('/cpuprofile', ['?seconds=0', '?seconds=x']),
  ],
  headers: accepts,
  usual: [],
  bodies: ['', 'x'],
};

/** Reads that say something of their moment. */
export const volatileReads: OddRequests = {
  ...lastingReads,
  targets: [
    ...under('/health', ['', '/diskSpace', '/eventLoop', '/webhookBacklog', '?x']),
    ...under('/info', ['', '/', '?x']),
    ...under('/metrics/', ['process.uptime', 'webhook.deliveries', 'webhook.deliveries?tag=result:stored']),
    ...under('/prometheus', ['', '?includedNames=process_uptime_seconds,webhook_deliveries_total', '/x']),
    ...under('/httpexchanges', ['', '/x', '?x']),
    ...under('/deliveries', ['', '?limit=1', `/${DELIVERY}`, `/${DELIVERY}?x`, '/']),
    ...under('/eventloop', ['', '/x', '?x']),
    ...under('/threaddump', ['', '/x', '?x']),
  ],
};

/** What stops the process for a while is not read. */
export const dumps: OddRequests = {
  ...lastingReads,
  methods: ['HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE'],
  targets: ['/actuator/heapdump', '/actuator/cpuprofile', '/actuator/heapdump/', '/actuator/heapdump/x'],
};

/** Writes; a change of a log level succeeds as it stands. */
export const writes: OddRequests = {
  methods: ['POST', 'DELETE', 'GET', 'OPTIONS', 'PUT'],
  targets: [
    ...under('/loggers', ['/inbox', '/inbox/', '/no', '', '/inbox?for=x', '/%69nbox']),
    ...under('/mine', ['', '/x', '/', '?a=1', '/x?a=1&a=2']),
    ...under('/deliveries', [`/${DELIVERY}`, '/no', '', `/${DELIVERY}?x`]),
    ...under('/shutdown', ['', '/', '?x']),
  ],
  headers: [
    'Content-Type: text/plain',
    'Content-Type:',
    'Content-Type: application/vnd.spring-boot.actuator.v3+json',
    'Content-Type: application/x-www-form-urlencoded',
    'Origin: http://x',
    'Accept: text/html',
  ],
  usual: [JSON_LABEL],
  bodies: [
    '{"configuredLevel":"info"}',
    '{"configuredLevel":"loud"}',
    '{"configuredLevel":null}',
    '{"configuredLevel":"info","for":"x"}',
    '{"action":"replay"}',
    '{"action":"discard"}',
    '{"action":"both"}',
    '{}',
    `{"a":"${' '.repeat(64 * 1024)}"}`,
    ...brokenBodies,
  ],
};

function basic(credentials: string): string {
  return `Authorization: Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** Who may read what is secured. */
export const ADMIN = basic('admin:sesame');

/** Users of a configuration module, in source text: one without the role. */
export const users = `[{ user: 'guest', password: 'sesame', roles: [] }]`;

/** A door that only one user may read. */
export const secured = {
  MANAGEMENT_INCLUDE: '*',
  MANAGEMENT_ENDPOINT_ACCESS: 'metrics=none',
  MANAGEMENT_MAX_ACCESS: 'read-only',
  MANAGEMENT_INFO: 'build,git',
  MANAGEMENT_USER: 'admin',
  MANAGEMENT_PASSWORD: 'sesame',
  MANAGEMENT_ROLE: 'ops',
  // Else the first few failures would be all that is tried.
  MANAGEMENT_MAX_FAILED_LOGINS: '0',
};

const credentials: readonly Line[] = [
  basic('admin:wrong'),
  basic('guest:sesame'),
  basic('nobody:sesame'),
  basic('admin'),
  'Authorization: Basic %',
  'Authorization: Bearer sesame',
  'authorization:',
];

/** Reads and writes of a secured door, with and without proper credentials. */
export const guarded: OddRequests = {
  methods,
  targets: [
    '/actuator/loggers/inbox',
    ...['/livez', '/readyz', '/livez?x', '/'],
    ...under('', [
      '',
      '/',
      '/nothing',
      '/info',
      '/env/PORT',
      '/metrics',
      '/mappings',
      '/health/db',
      '/health/no',
    ]),
    ...under('', ['/loggers', '/loggers/no', '/mine', '/mine/fails', '/configprops/rest', '/deliveries/no']),
    ...under('', ['/shutdown', '/heapdump', '/cpuprofile']),
  ],
  headers: [...credentials, ...accepts],
  usual: [ADMIN],
  bodies: ['', '{"configuredLevel":"info"}', ...brokenBodies],
};
