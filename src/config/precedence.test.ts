import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { loadConfig } from 'portico';
import { rounds } from '../../test/support/proof-settings.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { infoParts } from './options/management.ts';
import { flagOf } from './options/option.ts';
import {
  doors,
  limitKeys,
  type OptionKey,
  optionKeys,
  optionOf,
  type SettingKey,
  settingKeys,
} from './options/options.ts';

const path = fc
  .array(fc.stringMatching(/^[\w~-]{1,6}$/), { minLength: 1, maxLength: 3 })
  .map((parts) => `/${parts.join('/')}`);
const plain = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((text) => /^\P{Cc}+$/u.test(text) && text.trim() !== '');
const item = plain.filter((text) => !text.includes(',') && text.trim() === text);

const count = fc.integer({ min: 2, max: Number.MAX_SAFE_INTEGER });

/** A value that each option takes. */
const values: { readonly [K in SettingKey]: fc.Arbitrary<unknown> } = {
  host: fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()),
  interfaces: fc.shuffledSubarray([...doors], { minLength: 1 }),
  'http.trustProxy': fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constant('loopback')), { maxLength: 3 }),
  'tls.cert': item,
  'tls.key': item,
  'management.clientCa': item,
  'webhook.clientCa': item,
  'database.url': fc.oneof(
    item.map((text) => `sqlite:${text}`),
    fc.constant('postgres://u:p@h:1/d'),
  ),
  'database.readUrl': fc.domain().map((host) => `postgres://u:p@${host}/d`),
  'limits.database.readYourWrites': fc.integer({ min: 0, max: 3_600_000 }),
  'database.migrate': fc.boolean(),
  'limits.database.relationSteps': fc.constantFrom('additive', 'never', 'all-but-drops'),
  'backup.every': fc.constantFrom('1m', '6h', '30d'),
  'backup.folder': item,
  'backup.keep': count,
  'http.hosts': fc.array(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6()), { maxLength: 3 }),
  'http.fastPath': fc.boolean(),
  'limits.http.maxConnections': count,
  'limits.http.maxConnectionsPerAddress': count,
  'limits.http.maxUnreadBytes': count,
  'api.required': fc.constantFrom('none', 'write', 'all'),
  'api.readScope': fc.constantFrom('users:read', 'read'),
  'api.writeScope': fc.constantFrom('users:write', 'write'),
  'api.scopes': fc.subarray(['orders:read', 'orders:write']),
  'api.basic': fc.subarray(['users:read', 'users:write']),
  'limits.api.maxFailures': fc.nat(),
  'api.rate': fc.constantFrom('1/s', '1000/m'),
  'api.burst': fc.nat(),
  'api.maxLoopDelay': fc.integer({ min: 0, max: 3_600_000 }),
  'api.maxWriteDelay': fc.integer({ min: 0, max: 3_600_000 }),
  'api.jwt.issuer': fc.webUrl(),
  'api.jwt.audience': fc.array(item, { minLength: 1, maxLength: 3 }),
  'api.jwt.jwks': fc.webUrl(),
  'api.jwt.scopesClaim': fc.constantFrom('scp', '/realm_access/roles'),
  'limits.api.jwt.clockSkew': fc.integer({ min: 0, max: 600_000 }),
  'graphql.port': fc.integer({ min: 1, max: 16_000 }),
  'graphql.path': path,
  'graphql.users': fc.constantFrom('memory', 'database'),
  'graphql.introspection': fc.boolean(),
  'graphql.suggestions': fc.boolean(),
  'graphql.persistedQueries': fc.boolean(),
  'graphql.documents': fc.constantFrom('documents.json', './documents'),
  'graphql.onlyDocuments': fc.boolean(),
  'graphql.maxBatch': count,
  'limits.graphql.maxTokens': count,
  'limits.graphql.maxDepth': count,
  'limits.graphql.maxAliases': count,
  'limits.graphql.maxDirectives': count,
  'limits.graphql.maxRootFields': count,
  'limits.graphql.maxFields': count,
  'limits.graphql.maxResultValues': count,
  'limits.graphql.maxResultBytes': fc.integer({ min: 1_024, max: Number.MAX_SAFE_INTEGER }),
  'limits.graphql.maxBodyBytes': count,
  'limits.graphql.maxCacheBytes': count,
  'limits.graphql.maxWebSockets': count,
  'limits.graphql.maxSubscriptions': count,
  'limits.graphql.maxPerWebSocket': count,
  'limits.graphql.maxUsers': count,
  'limits.graphql.mutations': fc.constantFrom('together', 'single'),
  'graphql.cors.origins': fc.subarray(['https://a.example', 'http://b.example:8080', 'app://c']),
  'graphql.cors.credentials': fc.boolean(),
  'limits.graphql.cors.maxAge': count,
  // Ranges of their own keep the doors apart.
  'rest.port': fc.integer({ min: 16_001, max: 32_000 }),
  'limits.rest.idempotencyHours': fc.integer({ min: 1, max: 8_760 }),
  'limits.rest.maxBodyBytes': count,
  'limits.rest.maxImportBytes': fc.integer({ min: 0, max: 1_000_000_000 }),
  'rest.requireIfMatch': fc.boolean(),
  'rest.cors.origins': fc.subarray(['https://a.example', 'https://b.example']),
  'rest.cors.credentials': fc.boolean(),
  'limits.rest.cors.maxAge': count,
  'limits.rest.maxStreams': count,
  'limits.users.maxEvents': fc.integer({ min: 1_000, max: Number.MAX_SAFE_INTEGER }),
  'limits.users.eventHours': fc.integer({ min: 1, max: 8_760 }),
  'users.uniqueEmail': fc.boolean(),
  'rest.users': fc.constantFrom('contract', 'standard'),
  'rest.search': fc.constantFrom('none', 'keys', 'text'),
  'management.port': fc.integer({ min: 32_001, max: 48_000 }),
  'management.basePath': fc.oneof(path, fc.constant('/')),
  'management.include': fc.subarray(['health', 'Thread-Dump', '*', 'shutdown']),
  'management.exclude': fc.subarray(['info', 'heapdump', '*']),
  'management.access': fc.constantFrom('none', 'read-only', 'unrestricted'),
  'management.endpointAccess': fc.constantFrom(
    [],
    ['loggers=read-only'],
    ['heapdump=none', 'env=unrestricted'],
  ),
  'management.maxAccess': fc.constantFrom('none', 'read-only', 'unrestricted'),
  'management.user': plain.map((text) => text.replaceAll(':', '.')),
  'management.password': fc.oneof(
    plain.filter((text) => !text.startsWith('$')),
    fc.constant(`$scrypt$ln=10,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`),
  ),
  'management.role': plain,
  'management.consoleRole': item,
  'limits.management.maxFailedLogins': fc.nat(),
  'management.springBootAdmin.url': fc.webUrl(),
  'management.springBootAdmin.name': plain,
  'management.springBootAdmin.managementUrl': fc.webUrl(),
  'management.springBootAdmin.serviceUrl': fc.webUrl(),
  'management.springBootAdmin.user': plain.map((text) => text.replaceAll(':', '.')),
  'management.springBootAdmin.password': plain,
  'management.springBootAdmin.jvmMetrics': fc.boolean(),
  'management.showDetails': fc.constantFrom('never', 'when-authorized', 'always'),
  'limits.management.diskThresholdBytes': count,
  'limits.management.eventLoopThreshold': fc.integer({ min: 1, max: 3_600_000 }),
  'limits.management.backlogThreshold': fc.integer({ min: 1, max: 31_536_000_000 }),
  'management.info': fc.shuffledSubarray([...infoParts], { minLength: 1 }),
  'management.showValues': fc.constantFrom('never', 'when-authorized', 'always'),
  'webhook.port': fc.integer({ min: 48_001, max: 65_535 }),
  'webhook.secret': fc.array(item, { minLength: 1, maxLength: 3 }),
  'webhook.attempts': count,
  'limits.webhook.maxBodyBytes': count,
  'limits.webhook.maxBytesInFlight': count,
  'webhook.retention': count,
  'webhook.retentionBytes': count,
  'limits.webhook.dedupDays': count,
  'limits.webhook.timeout': fc.integer({ min: 1, max: 86_400_000 }),
  'webhook.concurrency': count,
  'limits.webhook.backoff': fc.integer({ min: 0, max: 86_400_000 }),
  'limits.webhook.maxBackoff': fc.integer({ min: 0, max: 604_800_000 }),
  'limits.webhook.lease': fc.integer({ min: 500, max: 600_000 }),
  'limits.webhook.handlerGrace': fc.integer({ min: 0, max: 2_592_000_000 }),
  'webhook.headers': fc.subarray(['x-github-event', 'X-Request-Id']),
  'limits.webhook.keptAttempts': count,
  'webhook.isolate': fc.boolean(),
  'limits.webhook.isolateMemory': fc.integer({ min: 16, max: 65_536 }),
  'audit.retention': count,
  'tracing.oneIn': count,
  'log.level': fc.constantFrom('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  'log.requests': fc.boolean(),
  profiles: fc.array(item, { maxLength: 3 }),
  'shutdown.preStopDelay': fc.integer({ min: 0, max: 300_000 }),
};

type Values = Readonly<Record<string, unknown>>;

// A replica makes sense only where the database is not a file and backups where it is one, whichever source names that;
// and Basic has only scopes that exist.
const { 'database.readUrl': _replica, 'backup.every': _every, 'api.basic': _basic, ...mixable } = values;
const some = fc.record(mixable, { requiredKeys: [] }) as fc.Arbitrary<Values>;
const isOption = ([key]: [string, unknown]) => !key.startsWith('limits.');
const someOptions = some.map((given) => Object.fromEntries(Object.entries(given).filter(isOption)));
/** In the weakest source, so that neither is ever there without the other. */
const credentials = fc.record({
  'management.user': values['management.user'],
  'management.password': values['management.password'],
  'management.springBootAdmin.user': values['management.springBootAdmin.user'],
  'management.springBootAdmin.password': values['management.springBootAdmin.password'],
  'api.jwt.issuer': values['api.jwt.issuer'],
  'api.jwt.audience': values['api.jwt.audience'],
  'api.jwt.jwks': values['api.jwt.jwks'],
  'tls.cert': values['tls.cert'],
  'tls.key': values['tls.key'],
});

const needs: { readonly [K in SettingKey]?: Values } = {
  'database.readUrl': { 'database.url': 'postgres://u@h/d' },
  'backup.every': { 'database.url': 'sqlite:x' },
  'management.user': { 'management.password': 'p' },
  'management.password': { 'management.user': 'u' },
  'management.role': { 'management.user': 'u', 'management.password': 'p' },
  'api.jwt.issuer': { 'api.jwt.audience': ['a'], 'api.jwt.jwks': 'j' },
  'api.jwt.audience': { 'api.jwt.issuer': 'i', 'api.jwt.jwks': 'j' },
  'api.jwt.jwks': { 'api.jwt.issuer': 'i', 'api.jwt.audience': ['a'] },
  'management.springBootAdmin.user': { 'management.springBootAdmin.password': 'p' },
  'management.springBootAdmin.password': { 'management.springBootAdmin.user': 'u' },
  'tls.cert': { 'tls.key': 'k' },
  'tls.key': { 'tls.cert': 'c' },
  'management.clientCa': { 'tls.cert': 'c', 'tls.key': 'k' },
  'webhook.clientCa': { 'tls.cert': 'c', 'tls.key': 'k' },
};

const asText = (value: unknown) => (Array.isArray(value) ? value.join(',') : String(value));

function asFlags(given: Values, joined: boolean): string[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const text = asText(value);
    // Behind a space a value that begins with "-" would be a flag.
    return joined || text.startsWith('-') ? [`${flagOf(key)}=${text}`] : [flagOf(key), text];
  });
}

function asEnvironment(given: Values): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [optionOf(key as OptionKey).env, asText(value)]),
  );
}

function asModule(given: Values): string {
  const nested: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const names = key.split('.');
    const last = names.pop() ?? '';
    let section = nested;
    for (const name of names) {
      section[name] ??= {};
      section = section[name] as Record<string, unknown>;
    }
    section[last] = value;
  }
  return JSON.stringify(nested);
}

test('every mix of flags, environment and module resolves by precedence', async () => {
  await using folder = await temporaryFolder();
  const run = async (flags: Values, env: Values, module: Values, fallback: Values, joined: boolean) => {
    const file = { ...fallback, ...module };
    await writeFile(join(folder.path, 'portico.config.json'), asModule(file));
    const config = await loadConfig({
      argv: asFlags(flags, joined),
      env: asEnvironment(env),
      cwd: folder.path,
    });
    for (const key of settingKeys) {
      const source = [flags, env, file].find((given) => Object.hasOwn(given, key));
      assert.deepEqual(config.settings[key], source === undefined ? optionOf(key).default : source[key], key);
    }
  };
  await fc.assert(fc.asyncProperty(someOptions, someOptions, some, credentials, fc.boolean(), run), {
    numRuns: rounds(200),
  });
});

test('every option comes through whole from each of its sources', async () => {
  await using folder = await temporaryFolder();
  const secretFile = join(folder.path, 'secret');
  for (const key of optionKeys) {
    const { env, secret } = optionOf(key);
    const load = async (flags: string[], variables: Record<string, string>, module: Values) => {
      // What an option needs beside itself to make sense.
      const beside = { ...(needs[key] ?? {}), ...module };
      await writeFile(join(folder.path, 'portico.config.json'), asModule(beside));
      return (await loadConfig({ argv: flags, env: variables, cwd: folder.path })).settings[key];
    };
    const roundTrip = async (value: unknown, joined: boolean) => {
      const only = { [key]: value };
      assert.deepEqual(await load(asFlags(only, joined), {}, {}), value);
      assert.deepEqual(await load([], asEnvironment(only), {}), value);
      assert.deepEqual(await load([], {}, only), value);
      if (!secret) return;
      await writeFile(secretFile, `${asText(value)}\n`);
      assert.deepEqual(await load([], { [`${env}_FILE`]: secretFile }, {}), value);
    };
    await fc.assert(fc.asyncProperty(values[key], fc.boolean(), roundTrip), { numRuns: rounds(20) });
  }
});

test('a limit comes through from a module only, and its former names say where it is now', async () => {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  for (const key of limitKeys) {
    const [value = 0] = fc.sample(values[key], 1) as number[];
    await writeFile(join(cwd, 'portico.config.json'), asModule({ [key]: value }));
    assert.equal((await loadConfig({ argv: [], env: {}, cwd })).settings[key], value, key);
    const former = key.slice('limits.'.length);
    const name = former.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();
    await writeFile(join(cwd, 'portico.config.json'), asModule({ [former]: value }));
    const place = `set ${key} in the configuration module`;
    await assert.rejects(
      loadConfig({ argv: [`${flagOf(former)}=${value}`], env: { [name]: `${value}` }, cwd }),
      {
        problems: [
          `${flagOf(former)} is not read any more; ${place}`,
          `${name} is not read any more; ${place}`,
          `portico.config.json: ${former} is now ${key}`,
        ],
      },
    );
  }
});
