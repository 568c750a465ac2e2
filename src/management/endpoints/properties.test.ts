import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import type { EffectiveOption, PropertySource } from '../../config/sources.ts';

describe('configprops', () => {
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
});

describe('env', () => {
  const property = (value: unknown, origin: string, secret = false) => ({ value, origin, secret });
  const propertySources: readonly PropertySource[] = [
    { name: 'commandLineArgs', properties: new Map() },
    {
      name: 'systemEnvironment',
      properties: new Map([
        ['REST_PORT', property('9000', 'System Environment Property "REST_PORT"')],
        ['HOME', property('/home/me', 'System Environment Property "HOME"')],
        ['WEBHOOK_SECRET', property('canary', 'System Environment Property "WEBHOOK_SECRET"', true)],
        ['a/b', property('odd', 'odd')],
      ]),
      aliases: new Map([['rest.port', 'REST_PORT']]),
    },
    { name: 'defaults', properties: new Map([['rest.port', property(8000, 'default')]]) },
  ];
  const environment = { activeProfiles: ['dev'], propertySources };

  test('one property: what holds, and what every source says of it', async () => {
    await using app = await managementApp({ environment });
    assert.deepEqual((await app.inject('/actuator/env/rest.port')).json(), {
      property: { source: 'systemEnvironment', value: '9000' },
      activeProfiles: ['dev'],
      defaultProfiles: [],
      propertySources: [
        { name: 'commandLineArgs' },
        {
          name: 'systemEnvironment',
          property: { value: '9000', origin: 'System Environment Property "REST_PORT"' },
        },
        { name: 'defaults', property: { value: 8000, origin: 'default' } },
      ],
    });
    assert.equal((await app.inject('/actuator/env/HOME')).json().property.value, '/home/me');
    assert.equal((await app.inject('/actuator/env/a%2Fb')).json().property.value, 'odd');
  });

  test('a property that several sources set says which of them wins', async () => {
    const [flags, variables, ...weaker] = propertySources;
    assert.ok(flags && variables);
    const set = { ...flags, properties: new Map([['rest.port', property('7000', '--rest-port')]]) };
    await using app = await managementApp({
      environment: { activeProfiles: [], propertySources: [set, variables, ...weaker] },
      showValues: 'always',
    });
    const { propertySources: sources } = (await app.inject('/actuator/env')).json();
    assert.deepEqual(
      sources.map(({ properties }: { properties: object }) => properties),
      [
        { 'rest.port': { value: '7000', origin: '--rest-port' } },
        {
          REST_PORT: {
            value: '9000',
            origin: 'System Environment Property "REST_PORT"',
            overriddenBy: 'commandLineArgs',
          },
          HOME: { value: '/home/me', origin: 'System Environment Property "HOME"' },
          WEBHOOK_SECRET: { value: '******', origin: 'System Environment Property "WEBHOOK_SECRET"' },
          'a/b': { value: 'odd', origin: 'odd' },
        },
        { 'rest.port': { value: 8000, origin: 'default', overriddenBy: 'commandLineArgs' } },
      ],
    );
    const matching = (await app.inject('/actuator/env?pattern=rest_')).json();
    assert.equal(matching.propertySources[1].properties.REST_PORT.overriddenBy, 'commandLineArgs');
    // The variable is the option: what it is set to does not hold.
    const byVariable = (await app.inject('/actuator/env/REST_PORT')).json();
    assert.deepEqual(byVariable, (await app.inject('/actuator/env/rest.port')).json());
    assert.deepEqual(byVariable.property, { source: 'commandLineArgs', value: '7000' });
  });

  test('a property that no source has is 404', async () => {
    await using app = await managementApp({ environment });
    for (const name of ['nope', 'home', 'rest', 'rest.port.x', '', '__proto__', 'constructor', 'HOME/x']) {
      const { statusCode } = await app.inject(`/actuator/env/${name}`);
      assert.equal(statusCode, 404, name);
    }
  });

  test('single properties are masked like all together', async () => {
    for (const [showValues, home] of [
      ['never', '******'],
      ['always', '/home/me'],
    ] as const) {
      await using app = await managementApp({ environment, showValues });
      const read = async (name: string) => (await app.inject(`/actuator/env/${name}`)).json();
      assert.equal((await read('HOME')).property.value, home);
      const secret = await read('WEBHOOK_SECRET');
      assert.equal(secret.property.value, '******');
      assert.ok(!JSON.stringify(secret).includes('canary'));
    }
  });

  test('known secrets are hidden wherever they stand', async () => {
    const properties = new Map([['npm_lifecycle_script', property('serve --x canary-9 --y', 'env')]]);
    await using app = await managementApp({
      environment: { activeProfiles: [], propertySources: [{ name: 'env', properties }] },
      secrets: { texts: ['canary-9'] },
    });
    const value = (await app.inject('/actuator/env/npm_lifecycle_script')).json().property.value;
    assert.equal(value, 'serve --x ****** --y');
  });

  test('a pattern leaves the properties whose names contain it, in any case', async () => {
    await using app = await managementApp({ environment });
    const names = async (pattern: string) => {
      const url = `/actuator/env?pattern=${encodeURIComponent(pattern)}`;
      const { propertySources: sources } = (await app.inject(url)).json();
      return sources.map(({ properties }: { properties: object }) => Object.keys(properties));
    };
    assert.deepEqual(await names('Port'), [[], ['REST_PORT'], ['rest.port']]);
    assert.deepEqual(await names('t_P'), [[], ['REST_PORT'], []]);
    // No regular expression.
    assert.deepEqual(await names('t.p'), [[], [], ['rest.port']]);
    assert.deepEqual(await names('^H'), [[], [], []]);
    assert.deepEqual(await names('('), [[], [], []]);
    assert.deepEqual(await names(''), [[], ['REST_PORT', 'HOME', 'WEBHOOK_SECRET', 'a/b'], ['rest.port']]);
    const two = await app.inject('/actuator/env?pattern=a&pattern=b');
    assert.equal(two.statusCode, 400);
    assert.match(two.json().message, /pattern/);
  });

  test('the passwords of the users are hidden without a word', async () => {
    const properties = new Map([['COPY', property('is ann-password!', 'env')]]);
    await using app = await managementApp({
      environment: { activeProfiles: [], propertySources: [{ name: 'env', properties }] },
      users: [{ user: 'ann', password: 'ann-password', roles: [] }],
    });
    const headers = { authorization: `Basic ${Buffer.from('ann:ann-password').toString('base64')}` };
    const response = await app.inject({ url: '/actuator/env/COPY', headers });
    assert.equal(response.json().property.value, 'is ******!');
  });
});
