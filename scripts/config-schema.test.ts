import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { loadConfig } from '../src/app/load-config.ts';
import { codeKeys, optionOf, settingKeys } from '../src/config/options/options.ts';
import { temporaryFolder } from '../test/support/temporary-folder.ts';
import { configSchema } from './config-schema.ts';

const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(configSchema());

/** A configuration with one key. */
function nested(key: string, value: unknown): unknown {
  return key.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
}

const GOOD: readonly unknown[] = [
  {},
  { $schema: './node_modules/portico/portico.schema.json', rest: { port: 9000 } },
  { interfaces: ['rest'], profiles: 'a, b', rest: { port: 'unix:/run/rest.sock', cors: { origins: ['*'] } } },
  { limits: { graphql: { maxTokens: 1 }, api: { jwt: { clockSkew: 0 } } } },
  { api: { tokens: { a: { secret: { env: 'A' }, scopes: ['users:read'], expires: '2027-01-31' } } } },
  {
    webhook: {
      sources: {
        github: { scheme: 'github', secrets: ['a', { file: '/run/b' }] },
        own: { scheme: 'hmac', secrets: 'a', header: 'x-a', event: { pointer: '/type' }, dedup: false },
      },
      forward: { all: 'https://a.example', some: { url: 'https://b.example', rate: '10/s', users: true } },
      alerts: { dead: { url: 'https://c.example', interval: 60_000 } },
      schedules: { nightly: '0 3 * * *', hourly: { cron: '0 * * * *', data: { a: 1 } } },
    },
  },
];

const BAD: readonly unknown[] = [
  { mangement: {} },
  { rest: { prot: 1 } },
  { rest: { port: 65_536 } },
  { rest: { port: 1.5 } },
  { log: { level: 'loud' } },
  { interfaces: ['rst'] },
  { graphql: { path: 'graphql' } },
  { graphql: { maxTokens: 1 } },
  { limits: { graphql: { maxTokens: 0 } } },
  { webhook: { handlers: {} } },
  { webhook: { sources: { a: { scheme: 'gihub', secrets: 'a' } } } },
  { webhook: { sources: { a: { scheme: 'github' } } } },
  { webhook: { forward: { a: { url: 'https://a.example', evnets: [] } } } },
  { webhook: { schedules: { a: { corn: '0 3 * * *' } } } },
  { api: { tokens: { a: { secret: [], scopes: [] } } } },
];

test('every setting and all data are in the schema, each default with it', () => {
  for (const key of settingKeys) {
    const value = optionOf(key).default;
    if (value !== undefined)
      assert.ok(validate(nested(key, value)), `${key} ${JSON.stringify(validate.errors)}`);
    assert.ok(!validate(nested(key, {})), key);
    assert.ok(!validate(nested(`${key}x`, value)), key);
  }
  for (const [key, { json }] of codeKeys) assert.equal(validate(nested(key, {})), json, key);
});

test('an editor accepts what the service accepts, and underlines what it refuses', async () => {
  await using folder = await temporaryFolder();
  const start = async (config: unknown) => {
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(config));
    return loadConfig({ argv: [], env: {}, cwd: folder.path });
  };
  for (const config of GOOD) {
    assert.ok(validate(config), `${JSON.stringify(config)} ${JSON.stringify(validate.errors)}`);
    await start(config);
  }
  for (const config of BAD) assert.ok(!validate(config), JSON.stringify(config));
});
