import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { loadConfig } from '../config/load.ts';
import { closedInConsole, exposedDoors } from './door-security.ts';

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
