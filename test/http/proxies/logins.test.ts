import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { startTestService } from '../../support/service.ts';
import { proxies } from './proxy.ts';

const env = { MANAGEMENT_USER: 'ann', MANAGEMENT_PASSWORD: 'right' };
const [EVE, ANN, ZOE] = ['127.0.0.5', '127.0.0.6', '127.0.0.7'];

/** Logs in from an address of this host; resolves to the status. */
function logIn(url: string, from: string, password: string, forwarded?: string): Promise<number> {
  const headers = {
    authorization: `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`,
    ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
  };
  return new Promise((resolve, reject) => {
    request(`${url}/actuator/info`, { localAddress: from, headers })
      .on('error', reject)
      .on('response', (reply) => {
        reply.resume();
        resolve(reply.statusCode ?? 0);
      })
      .end();
  });
}

/** What a proxy adds to the client's own header instead of replacing it. */
const adds: Readonly<Record<string, (config: string) => string>> = {
  HAProxy: (config) => config.replace('http-request set-header X-Forwarded-For %[src]', 'option forwardfor'),
  nginx: (config) => config.replace('$remote_addr', '$proxy_add_x_forwarded_for'),
};

for (const { name, missing, start } of proxies) {
  for (const way of ['replaces', 'adds to']) {
    const change = way === 'adds to' ? adds[name] : undefined;
    for (const trusted of ['127.0.0.1', ...(way === 'adds to' ? ['true'] : [])]) {
      test(`${name}, which ${way} X-Forwarded-For, with TRUST_PROXY=${trusted}: each client has its own limit on log-ins`, {
        skip: missing,
      }, async () => {
        await using service = await startTestService({ env: { ...env, TRUST_PROXY: trusted } });
        await service.listen();
        await using proxy = await start([service.urls], change);
        for (let i = 0; i < 10; i++) {
          // In the name of another client, and of many.
          const claimed = i % 2 === 0 ? ANN : `203.0.113.${i}`;
          assert.equal(await logIn(proxy.url, EVE, `${i}`, claimed), 401);
        }
        assert.equal(await logIn(proxy.url, EVE, 'right'), 429);
        assert.equal(await logIn(proxy.url, EVE, 'right', ANN), 429);
        assert.equal(await logIn(proxy.url, EVE, 'right', '203.0.113.99'), 429);
        assert.equal(await logIn(proxy.url, ANN, 'right'), 200);
        assert.equal(await logIn(proxy.url, ZOE, 'right', EVE), 200);
      });
    }
  }

  test(`past ${name} a client claims no address, and without TRUST_PROXY the proxy is the client`, {
    skip: missing,
  }, async () => {
    await using service = await startTestService({ env: { ...env, TRUST_PROXY: '127.0.0.1' } });
    await service.listen();
    await using proxy = await start([service.urls]);
    const { management = '' } = service.urls;
    for (let i = 0; i < 10; i++) assert.equal(await logIn(management, EVE, `${i}`, ANN), 401);
    assert.equal(await logIn(management, EVE, 'right', '203.0.113.1'), 429);
    assert.equal(await logIn(proxy.url, ANN, 'right'), 200);

    await using other = await startTestService({ env });
    await other.listen();
    await using front = await start([other.urls]);
    for (let i = 0; i < 10; i++) assert.equal(await logIn(front.url, EVE, `${i}`), 401);
    assert.equal(await logIn(front.url, ANN, 'right'), 429);
    assert.equal(await logIn(other.urls.management ?? '', ANN, 'right'), 200);
  });
}
