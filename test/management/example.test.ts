import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkShownRequests, shownCommand, shownCommands, startExample } from '../support/shown-commands.ts';

const ROOT = join(import.meta.dirname, '../..');
const SERVE = shownCommand('examples/management-plugin/README.md', /^npm exec -- node /);
const REQUESTS = shownCommands('examples/management-plugin/README.md', /^curl /);
const ENV = { NODE_ENV: 'demo', SHOP_TOKEN: 'zq7secret' };
const V3 = 'application/vnd.spring-boot.actuator.v3+json';

test('the example serves health, info, metrics, environment and their index, with no option given', async () => {
  await using example = await startExample(SERVE, { env: ENV });
  const get = async (path: string) => {
    const response = await fetch(example.origin + path);
    assert.equal(response.status, 200, path);
    return {
      type: response.headers.get('content-type'),
      json: (await response.json()) as Record<string, unknown>,
    };
  };
  const read = async (path: string) => {
    const { type, json } = await get(path);
    assert.equal(type, V3, path);
    return json;
  };
  assert.deepEqual((await get('/')).json, { hello: 'world' });

  const { _links: links } = await read('/actuator');
  const found = Object.entries(links as Record<string, { href: string; templated: boolean }>);
  for (const name of ['self', 'health', 'info', 'metrics', 'env']) {
    const href = found.find(([link]) => link === name)?.[1].href;
    assert.equal(href, `${example.origin}/actuator${name === 'self' ? '' : `/${name}`}`);
  }
  for (const [name, { href, templated }] of found) {
    if (!templated) assert.equal((await fetch(href)).status, 200, name);
  }

  assert.deepEqual(await read('/actuator/health'), { status: 'UP', groups: ['liveness', 'readiness'] });
  const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.deepEqual(await read('/actuator/info'), { build: { name, artifact: name, version } });
  const { names } = await read('/actuator/metrics');
  assert.ok((names as readonly string[]).includes('process.uptime'));

  const env = await read('/actuator/env');
  assert.deepEqual(env.activeProfiles, ['demo']);
  const [source] = env.propertySources as readonly { name: string; properties: Record<string, unknown> }[];
  assert.equal(source?.name, 'systemEnvironment');
  assert.deepEqual(source?.properties.PORT, {
    value: '******',
    origin: 'System Environment Property "PORT"',
  });
  assert.ok(!JSON.stringify(env).includes('zq7secret'));

  assert.equal((await fetch(`${example.origin}/livez`)).status, 200);
  assert.equal((await fetch(`${example.origin}/readyz`)).status, 200);
  assert.equal((await fetch(`${example.origin}/actuator/nope`)).status, 404);
  assert.equal(await example.stop(), 0);
});

test('what the README of the example shows is what comes back', async () => {
  await using example = await startExample(SERVE, { env: ENV });
  await checkShownRequests(REQUESTS, { webhook: example.origin });
});
