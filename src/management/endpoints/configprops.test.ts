import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import type { EffectiveOption } from '../../config/effective-options.ts';

const configuration: readonly EffectiveOption[] = [
  { key: 'host', value: '::1', origin: 'default', secret: false },
  { key: 'rest.port', value: 9000, origin: '--rest-port', secret: false },
  { key: 'webhook.port', value: 3000, origin: 'default', secret: false },
  { key: 'webhook.secret', value: ['canary'], origin: 'WEBHOOK_SECRET', secret: true },
  { key: 'management.role', value: undefined, origin: undefined, secret: false },
];

const rest = {
  prefix: 'rest',
  properties: { port: 9000 },
  inputs: { port: { value: 9000, origin: '--rest-port' } },
};
const webhook = {
  prefix: 'webhook',
  properties: { port: 3000, secret: '******' },
  inputs: {
    port: { value: 3000, origin: 'default' },
    secret: { value: '******', origin: 'WEBHOOK_SECRET' },
  },
};

test('options by door, with values and origins', async () => {
  await using app = await managementApp({ configuration });
  assert.deepEqual((await app.inject('/actuator/configprops')).json(), {
    contexts: {
      portico: {
        beans: {
          common: {
            prefix: 'common',
            properties: { host: '::1' },
            inputs: { host: { value: '::1', origin: 'default' } },
          },
          rest,
          webhook,
          management: { prefix: 'management', properties: {}, inputs: {} },
        },
      },
    },
  });
});

test('those of one prefix', async () => {
  await using app = await managementApp({ configuration });
  const beans = async (prefix: string) => {
    const response = await app.inject(`/actuator/configprops/${prefix}`);
    return response.statusCode === 200 ? response.json().contexts.portico.beans : response.statusCode;
  };
  assert.deepEqual(await beans('rest'), { rest });
  assert.deepEqual(await beans('web'), { webhook });
  for (const prefix of ['nope', '', 'REST', 'rest/port']) assert.equal(await beans(prefix), 404, prefix);
});

test('nothing is shown unless it is to be', async () => {
  await using app = await managementApp({ configuration, showValues: 'never' });
  const { beans } = (await app.inject('/actuator/configprops')).json().contexts.portico;
  assert.deepEqual(beans.rest, {
    prefix: 'rest',
    properties: { port: '******' },
    inputs: { port: { value: '******', origin: '--rest-port' } },
  });
});

test('without a configuration there is no such endpoint', async () => {
  await using app = await managementApp();
  assert.equal((await app.inject('/actuator/configprops')).statusCode, 404);
});
