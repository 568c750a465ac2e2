import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { KnownSecrets } from '../core/redaction.ts';
import { closedInConsole, configuredSecrets, exposedDoors } from './door-security.ts';
import { loadConfig } from './load-config.ts';

describe('door security', () => {
  /** The exposed doors of a configuration from environment settings. */
  async function exposed(env: Readonly<Record<string, string>>): Promise<readonly string[]> {
    await using folder = await temporaryFolder();
    return exposedDoors(await loadConfig({ argv: [], env, cwd: folder.path }));
  }

  const ALL = ['graphql', 'rest', 'management', 'webhook'];

  test('on loopback nothing is exposed', async () => {
    assert.deepEqual(await exposed({}), [], 'the default');
    for (const HOST of ['127.0.0.1', '127.0.0.2', '127.255.255.254', 'localhost', 'LocalHost', '::1']) {
      assert.deepEqual(await exposed({ HOST }), [], HOST);
    }
  });

  test('anywhere else every door without security of its own is', async () => {
    const hosts = [
      '0.0.0.0',
      '::',
      '192.168.1.2',
      'example.com',
      'localhost.example.com',
      '127.example.com',
      '1.127.0.0.1',
      '::2',
      '::1:1',
      'fe80::1',
    ];
    for (const HOST of hosts) assert.deepEqual(await exposed({ HOST }), ALL, HOST);
  });

  test('a door that asks for credentials is not exposed', async () => {
    const HOST = '0.0.0.0';
    assert.deepEqual(await exposed({ HOST, WEBHOOK_SECRET: 's' }), ['graphql', 'rest', 'management']);
    const user = { MANAGEMENT_USER: 'ann', MANAGEMENT_PASSWORD: 'pw' };
    assert.deepEqual(await exposed({ HOST, ...user }), ['graphql', 'rest', 'webhook']);
    assert.deepEqual(await exposed({ HOST, ...user, WEBHOOK_SECRET: 's' }), ['graphql', 'rest']);
  });

  test('a closed door is not exposed', async () => {
    assert.deepEqual(await exposed({ HOST: '::', INTERFACES: 'webhook,rest' }), ['webhook', 'rest']);
    assert.deepEqual(await exposed({ HOST: '::', INTERFACES: 'webhook', WEBHOOK_SECRET: 's' }), []);
  });

  test('users and deliveries are closed in the console while other doors ask for credentials and management does not', async () => {
    const closed = async (env: Readonly<Record<string, string>>) => {
      await using folder = await temporaryFolder();
      return closedInConsole(await loadConfig({ argv: [], env, cwd: folder.path })) !== undefined;
    };
    const tls = { TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' };
    const user = { MANAGEMENT_USER: 'ann', MANAGEMENT_PASSWORD: 'pw' };
    assert.equal(await closed({}), false);
    for (const asks of [
      { API_REQUIRED: 'write' },
      { API_REQUIRED: 'all' },
      { WEBHOOK_SECRET: 's' },
      { ...tls, WEBHOOK_CLIENT_CA: 'ca.pem' },
    ]) {
      const what = JSON.stringify(asks);
      assert.equal(await closed(asks), true, what);
      assert.equal(await closed({ ...asks, ...user }), false, what);
      assert.equal(await closed({ ...tls, ...asks, MANAGEMENT_CLIENT_CA: 'ca.pem' }), false, what);
    }
  });
});

describe('configured secrets', () => {
  async function secretsOf(env: Record<string, string>, module = '{}'): Promise<readonly string[]> {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'file'), 'from-a-file\n');
    await writeFile(join(folder.path, 'portico.config.ts'), `export default ${module};`);
    return new KnownSecrets(configuredSecrets(await loadConfig({ argv: [], env, cwd: folder.path }))).texts;
  }

  test('secrets of every kind, the longest first', async () => {
    const module = `{
    management: { users: [{ user: 'ann', password: 'ann-password', roles: [] }] },
    webhook: { secret: ['secret-one', 'secret-one-two'] },
  }`;
    const env = {
      DATABASE_URL: 'postgres://me:pass%40word@host/db',
      DATABASE_READ_URL: 'postgres://me:replica-word@replica:5432,other:5433/db',
      MANAGEMENT_USER: 'operator',
      MANAGEMENT_PASSWORD_FILE: 'file',
    };
    const secrets = await secretsOf(env, module);
    assert.deepEqual([...secrets].sort(), [
      'ann-password',
      'from-a-file',
      'pass%40word',
      'pass@word',
      'replica-word',
      'secret-one',
      'secret-one-two',
    ]);
    // Or a shorter one would leave the rest of the longer one.
    assert.deepEqual(
      secrets,
      secrets.toSorted((a, b) => b.length - a.length),
    );
  });

  test('what is short would be found everywhere, and what is not set nowhere', async () => {
    assert.deepEqual(await secretsOf({}), []);
    assert.deepEqual(await secretsOf({ WEBHOOK_SECRET: 'abcde' }), []);
    assert.deepEqual(await secretsOf({ WEBHOOK_SECRET: 'abcdef', DATABASE_URL: 'postgres://h/%E0%A4%A' }), [
      'abcdef',
    ]);
  });

  test('more are added, each once', () => {
    const known = new KnownSecrets(['later-one', 1]);
    const before = known.texts;
    known.add(['later-one', undefined, 'x', 'the-latest-one', 'later-one']);
    assert.deepEqual(known.texts, ['the-latest-one', 'later-one']);
    assert.notEqual(known.texts, before);
  });
});
