import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import { type AdminPeer, type Registration, startAdminPeer } from './admin-peer.ts';
import { ask, detect, isModern, statusOf } from './admin-view.ts';

// What a Spring Boot Admin server and its pages ask a registered service for, by the server's own rules.

const PANELS = ['health', 'info', 'metrics', 'env', 'loggers', 'httpexchanges', 'mappings', 'threaddump'];

interface Registered extends AsyncDisposable {
  readonly peer: AdminPeer;
  readonly registration: Registration;
  /** Asks for a path below the management URL. */
  read(path: string): ReturnType<typeof ask>;
  /** The JSON there, which must be of a modern type. */
  json(path: string): Promise<Record<string, unknown>>;
}

/** A service with everything exposed, and what a server knows of it. */
async function register(env: Record<string, string> = {}, module?: string): Promise<Registered> {
  await using cleanup = new AsyncDisposableStack();
  const peer = cleanup.use(await startAdminPeer());
  const service = cleanup.use(
    await startTestService({
      env: {
        INTERFACES: 'rest,management',
        MANAGEMENT_INCLUDE: '*',
        SPRING_BOOT_ADMIN_URL: peer.url,
        ...env,
      },
      ...(module === undefined ? {} : { module }),
    }),
  );
  await service.listen();
  const [registration] = await waitFor(
    'the registration',
    () => peer.instances.size > 0 && [...peer.instances.values()],
  );
  assert.ok(registration !== undefined);
  const read = (path: string) => ask(registration, `${registration.managementUrl}/${path}`);
  const rest = cleanup.move();
  return {
    peer,
    registration,
    read,
    async json(path) {
      const seen = await read(path);
      assert.equal(seen.status, 200, path);
      assert.ok(isModern(seen), `${path}: ${seen.type}`);
      return seen.json as Record<string, unknown>;
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

test('the index names every panel', async () => {
  await using service = await register();
  const found = await detect(service.registration);
  for (const id of PANELS) {
    assert.equal(found.get(id), `${service.registration.managementUrl}/${id}`);
  }
  assert.ok(![...found.values()].some((href) => href.includes('{')), 'templates are no addresses');
});

test('without an index the endpoints answer the probes, those that are not there do not', async () => {
  await using service = await register({ MANAGEMENT_BASE_PATH: '/', MANAGEMENT_EXCLUDE: 'loggers' });
  const found = await detect(service.registration);
  assert.deepEqual([...found.keys()].sort(), PANELS.filter((id) => id !== 'loggers').sort());
});

test('a secured service is read with the credentials that it sent, and with no others', async () => {
  const secured = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: 'pässwörd' };
  const told = { SPRING_BOOT_ADMIN_USER: 'ops', SPRING_BOOT_ADMIN_PASSWORD: 'pässwörd' };
  await using open = await register({ ...secured, ...told });
  assert.ok((await detect(open.registration)).has('health'));
  assert.equal(await statusOf(open.registration), 'UP');
  await using closed = await register(secured);
  assert.equal((await detect(closed.registration)).size, 0);
  assert.equal(await statusOf(closed.registration), 'DOWN');
});

test('the status is that of the service', async () => {
  await using well = await register();
  assert.equal(await statusOf(well.registration), 'UP');
  const failing =
    'export default { management: { healthChecks: { quick: () => 0, quota: async () => 7 } } };';
  await using ill = await register({}, failing);
  assert.equal(await statusOf(ill.registration), 'DOWN');
  const seen = await ill.read('health');
  assert.ok(isModern(seen));
  const { components } = seen.json as { components: Record<string, { details: unknown }> };
  assert.deepEqual(components.quota?.details, { code: 7 });
});

test('no order of the accepted types makes it look like Spring Boot 1', async () => {
  await using service = await register();
  const [v1, v2, v3] = [1, 2, 3].map((version) => `application/vnd.spring-boot.actuator.v${version}+json`);
  for (const accept of [
    `${v2}, ${v1}, application/json`,
    `${v3}, ${v2}, ${v1}, application/json`,
    `application/json, ${v2}`,
    '*/*',
  ]) {
    for (const id of ['', ...PANELS]) {
      const url = `${service.registration.managementUrl}/${id}`.replace(/\/$/, '');
      const { headers } = await fetch(url, { headers: { accept } });
      const type = headers.get('content-type') ?? '';
      assert.ok(type.startsWith(String(v2)) || type.startsWith(String(v3)), `${accept} ${id}: ${type}`);
    }
  }
});

interface Metric {
  readonly name: string;
  readonly baseUnit?: string;
  readonly measurements: readonly { readonly statistic: string; readonly value: number }[];
  readonly availableTags: readonly { readonly tag: string; readonly values: readonly string[] }[];
}

test('the pages about process, memory, threads and pauses have what they draw', async () => {
  await using service = await register();
  const metric = async (path: string) => (await service.json(`metrics/${path}`)) as unknown as Metric;
  const value = async (path: string, statistic = 'VALUE') => {
    const { measurements } = await metric(path);
    const found = measurements.find((each) => each.statistic === statistic)?.value;
    assert.equal(typeof found, 'number', `${path} ${statistic}`);
    return found ?? Number.NaN;
  };
  assert.ok((await value('process.uptime')) > 0);
  assert.ok((await value('system.cpu.count')) >= 1);
  for (const name of ['process.cpu.usage', 'system.cpu.usage']) {
    const share = await value(name);
    assert.ok(share >= 0 && share <= 1, name);
  }
  for (const aspect of ['used', 'committed', 'max']) {
    const { availableTags, baseUnit } = await metric(`jvm.memory.${aspect}`);
    assert.equal(baseUnit, 'bytes');
    const areas = availableTags.find(({ tag }) => tag === 'area')?.values;
    assert.deepEqual(areas, ['heap', 'nonheap']);
    assert.ok((await value(`jvm.memory.${aspect}?tag=area:heap`)) > 1_000_000);
    // The pages send the first tag twice.
    assert.ok((await value(`jvm.memory.${aspect}?tag=area:heap&tag=area:heap`)) > 1_000_000);
    const { availableTags: left } = await metric(`jvm.memory.${aspect}?tag=area:nonheap`);
    assert.ok(!left.some(({ tag }) => tag === 'area'));
  }
  for (const statistic of ['COUNT', 'TOTAL_TIME', 'MAX']) {
    assert.ok((await value('jvm.gc.pause', statistic)) >= 0);
  }
  if (process.platform === 'linux') {
    const live = await value('jvm.threads.live');
    assert.ok(live > 1);
    assert.ok((await value('jvm.threads.daemon')) < live);
    assert.ok((await value('jvm.threads.peak')) >= live);
  }
  const { names } = await service.json('metrics');
  assert.ok((names as readonly string[]).includes('http.server.requests'));
});

test('the names of a JVM are only there where they are wanted', async () => {
  await using service = await register({ SPRING_BOOT_ADMIN_JVM_METRICS: 'false' });
  const { names } = await service.json('metrics');
  assert.deepEqual(
    (names as readonly string[]).filter((name) => name.startsWith('jvm.') || name.startsWith('system.')),
    [],
  );
});

test('the pages about environment, loggers, requests, mappings and threads have what they draw', async () => {
  await using service = await register({ PROFILES: 'staging' });
  const env = await service.json('env');
  assert.deepEqual(env.activeProfiles, ['staging']);
  assert.ok(Array.isArray(env.propertySources) && env.propertySources.every(({ properties }) => properties));
  // Whether it may be written is what Allow says.
  const options = await ask(service.registration, `${service.registration.managementUrl}/env`, 'OPTIONS');
  assert.equal(options.status, 200);
  assert.ok(!options.headers.get('allow')?.includes('POST'));
  const changeable = await ask(
    service.registration,
    `${service.registration.managementUrl}/loggers/ROOT`,
    'OPTIONS',
  );
  assert.match(String(changeable.headers.get('allow')), /\bPOST\b/);

  const { levels, loggers } = await service.json('loggers');
  assert.ok((levels as readonly string[]).includes('DEBUG'));
  for (const logger of Object.values(loggers as Record<string, { effectiveLevel?: unknown }>)) {
    assert.equal(typeof logger.effectiveLevel, 'string');
  }

  const { exchanges } = await service.json('httpexchanges');
  const [exchange] = exchanges as readonly {
    timestamp: string;
    timeTaken: string;
    request: object;
    response: object;
  }[];
  assert.ok(exchange !== undefined);
  assert.match(exchange.timeTaken, /^PT(?:\d+H)?(?:\d+M)?\d+(?:\.\d+)?S$/);
  assert.ok(!Number.isNaN(Date.parse(exchange.timestamp)));
  assert.ok('uri' in exchange.request && 'method' in exchange.request && 'status' in exchange.response);

  const { contexts } = await service.json('mappings');
  for (const { mappings } of Object.values(contexts as Record<string, { mappings: object }>)) {
    assert.ok('dispatcherServlets' in mappings || 'dispatcherHandlers' in mappings);
  }

  const { threads } = await service.json('threaddump');
  for (const thread of threads as readonly Record<string, unknown>[]) {
    assert.equal(typeof thread.threadName, 'string');
    assert.ok(Array.isArray(thread.stackTrace));
  }
  const info = await service.json('info');
  assert.equal(typeof (info.build as { version: unknown }).version, 'string');
});
