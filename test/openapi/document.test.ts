import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { buildSchema } from 'graphql';
import { documentOf, startDescribed } from './described-service.ts';

test('the documents are sound OpenAPI 3.1, of all doors and of each', async () => {
  await using service = await startDescribed({ WEBHOOK_SECRET: 'sesame' });
  const config = await createConfig({ extends: ['recommended'] });
  const paths: Record<string, readonly string[]> = {};
  for (const path of ['openapi', 'openapi/rest', 'openapi/management', 'openapi/webhook', 'docs/openapi']) {
    const document = await documentOf(service, path);
    const source = JSON.stringify(document);
    const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config });
    assert.deepEqual(
      problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
      [],
      path,
    );
    paths[path] = Object.keys(document.paths);
  }
  assert.deepEqual(paths['openapi/rest'], ['/users', '/users/{id}', '/update/{id}', '/delete/{id}']);
  assert.deepEqual(paths['openapi/webhook'], ['/webhook', '/webhook/hub', '/webhook/shop']);
  assert.deepEqual(paths['docs/openapi'], paths.openapi);
  const servers = await fetch(`${service.urls.management}/actuator/openapi`, {
    headers: { host: 'portico.example:9' },
  });
  assert.match(await servers.text(), /"servers":\[\{"url":"http:\/\//);
});

test('the document shows what is exposed, with the access that it has, and who may see it', async () => {
  const admin = Buffer.from('ops:sesame').toString('base64');
  await using service = await startDescribed({
    MANAGEMENT_EXCLUDE: 'env,docs',
    MANAGEMENT_ENDPOINT_ACCESS: 'loggers=read-only,heapdump=unrestricted',
    MANAGEMENT_USER: 'ops',
    MANAGEMENT_PASSWORD: 'sesame',
  });
  const url = `${service.urls.management}/actuator`;
  assert.equal((await fetch(`${url}/openapi`)).status, 401);
  const document = await documentOf(service, 'openapi', { headers: { authorization: `Basic ${admin}` } });
  const { paths } = document;
  assert.ok(!('/actuator/env' in paths) && !('/actuator/docs' in paths) && '/actuator/heapdump' in paths);
  assert.deepEqual(Object.keys(paths['/actuator/loggers/{name}'] ?? {}), ['servers', 'get']);
  const health = paths['/actuator/health']?.get as { security?: unknown; responses: object };
  assert.deepEqual(health.security, [{ basic: [] }]);
  assert.ok('401' in health.responses && !('401' in (paths['/livez']?.get?.responses ?? {})));
});

test('the schema of GraphQL is served with its descriptions, and no door that is closed is described', async () => {
  await using service = await startDescribed();
  const reply = await fetch(`${service.urls.management}/actuator/openapi/graphql`);
  assert.equal(reply.headers.get('content-type'), 'text/plain; charset=utf-8');
  const sdl = await reply.text();
  assert.equal(
    buildSchema(sdl).getQueryType()?.getFields().hello?.description?.startsWith('A greeting'),
    true,
  );
  await using alone = await startDescribedAlone();
  for (const door of ['graphql', 'rest', 'none', 'constructor']) {
    assert.equal((await fetch(`${alone.urls.management}/actuator/openapi/${door}`)).status, 404, door);
  }
});

async function startDescribedAlone() {
  const { startTestService } = await import('../support/service.ts');
  const service = await startTestService({
    env: { INTERFACES: 'management', MANAGEMENT_INCLUDE: 'openapi' },
  });
  await service.listen();
  return service;
}
