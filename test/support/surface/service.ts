import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createService, loadConfig, type Service } from 'portico';
import { stringify } from 'yaml';

const CREDENTIALS = { user: 'ops', password: 'sesame' };
/** One more than a meter may have, so that the meter of overflows is declared. */
const TOO_MANY_SERIES = 1_001;
const OVERFULL = 'surface.overfull';

/** Parts of the configuration that add paths or meters. */
const MODULE = `export default {
  api: { tokens: { page: { secret: 'a-token-of-the-surface', scopes: ['users:read'] } } },
  management: { endpoints: [
    { id: 'thing', path: 'part?', query: ['a', 'b?'], read: ({ path, query }) => ({ path, query }),
      write: ({ body }) => body ?? undefined, delete: () => undefined },
  ] },
  webhook: {
    sources: { hub: { scheme: 'github', secrets: ['sesame'] } },
    forward: { other: { url: 'http://127.0.0.1:9/', allowPrivate: true } },
    schedules: { nightly: '0 3 * * *' },
    alerts: { dead: { url: 'http://127.0.0.1:9/', allowPrivate: true } },
  },
};`;

/** Opens a service with every option that adds a path or a meter; its doors do not listen. `cwd` is an empty folder. */
export async function openFullService(cwd: string): Promise<Service> {
  writeFileSync(join(cwd, 'portico.config.ts'), MODULE);
  const env = {
    DATABASE_URL: `sqlite:${join(cwd, 'portico.db')}`,
    API_REQUIRED: 'write',
    MANAGEMENT_INCLUDE: '*',
    MANAGEMENT_USER: CREDENTIALS.user,
    MANAGEMENT_PASSWORD: CREDENTIALS.password,
    WEBHOOK_SECRET: 'sesame',
    BACKUP_EVERY: '1d',
    BACKUP_FOLDER: join(cwd, 'backups'),
    SPRING_BOOT_ADMIN_URL: 'http://127.0.0.1:9',
    SPRING_BOOT_ADMIN_JVM_METRICS: 'true',
    SHUTDOWN_PRE_STOP_DELAY: '0',
  };
  const logStream = new Writable({ write: (_chunk, _encoding, done) => done() });
  const service = await createService(await loadConfig({ argv: [], env, cwd }), { logStream });
  // Some meters are declared when the plugins of a door are loaded.
  await Promise.all(Object.values(service.doors).map((door) => door.ready()));
  return service;
}

async function managementText({ doors: { management } }: Service, path: string): Promise<string> {
  if (management === undefined) throw new Error('the management door is not open');
  const { user, password } = CREDENTIALS;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const { statusCode, body } = await management.inject({
    url: `/actuator/${path}`,
    headers: { authorization },
  });
  if (statusCode !== 200) throw new Error(`GET /actuator/${path} is answered with ${statusCode}: ${body}`);
  return body;
}

/** The OpenAPI document of a door with sorted keys, without version and addresses. */
export async function describeApi(service: Service, door: string): Promise<string> {
  const { servers: _servers, ...document } = JSON.parse(await managementText(service, `openapi/${door}`));
  const paths = Object.values(document.paths) as { servers?: unknown }[];
  for (const path of paths) delete path.servers;
  document.info.version = '(version)';
  return stringify(document, { sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
}

/** The schema of the GraphQL door. */
export async function describeGraphql(service: Service): Promise<string> {
  return (await managementText(service, 'openapi/graphql')).trimEnd();
}

/** Every meter, and the names and labels of its series in Prometheus. */
export async function describeMeters(service: Service): Promise<string> {
  const { metrics } = service;
  const full = metrics.counter(OVERFULL, { description: 'x', tags: ['key'] });
  for (let i = 0; i < TOO_MANY_SERIES; i++) full.with('key', String(i));
  const meters = [...metrics.meters()].filter(({ name }) => name !== OVERFULL);
  for (const { name, type, description, unit, tagKeys, buckets, series } of meters) {
    const [key, ...others] = tagKeys;
    if (![...series()].length && key !== undefined && type !== 'gauge') {
      const options = { description, unit, buckets, tags: [key, ...others] } as const;
      const tagged = type === 'counter' ? metrics.counter(name, options) : metrics.timer(name, options);
      tagged.with(...(tagKeys.flatMap((each) => [each, 'x']) as [string, string]));
    }
  }
  const blocks = meters.map(({ name, type, description, unit, tagKeys, buckets }) =>
    [
      `${name}: ${type}${unit === undefined ? '' : ` in ${unit}`}`,
      ...(tagKeys.length === 0 ? [] : [`  tags: ${tagKeys.join(', ')}`]),
      ...(buckets === undefined ? [] : [`  buckets: ${buckets.join(', ')}`]),
      `  ${description}`,
    ].join('\n'),
  );
  const samples = (await managementText(service, 'prometheus'))
    .split('\n')
    .filter((line) => /^\w/.test(line) && !line.startsWith(OVERFULL.replace('.', '_')))
    .map((line) => {
      const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
      const keys = Array.from(labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g), ([, key = '']) => key);
      return keys.length === 0 ? name : `${name}{${keys.join(', ')}}`;
    });
  return [
    ...blocks,
    ['In Prometheus', ...[...new Set(samples)].sort().map((each) => `  ${each}`)].join('\n'),
  ].join('\n\n');
}
