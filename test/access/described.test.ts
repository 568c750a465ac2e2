import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';
import { moduleWith } from './support/tokens.ts';

test('the document says which operations need which scope, and how they may be refused', async () => {
  for (const [required, read, write] of [
    ['none', undefined, undefined],
    ['write', undefined, [{ bearer: ['users:write'] }]],
    ['all', [{ bearer: ['users:read'] }], [{ bearer: ['users:write'] }]],
  ] as const) {
    await using service = await startTestService({
      module: moduleWith(),
      env: { INTERFACES: 'rest,management', API_REQUIRED: required, MANAGEMENT_INCLUDE: 'openapi' },
    });
    await service.listen();
    const reply = await fetch(`${service.urls.management}/actuator/openapi`);
    // biome-ignore lint/suspicious/noExplicitAny: a document of OpenAPI
    const { paths, components } = (await reply.json()) as any;
    const { get, post } = paths['/users'];
    assert.deepEqual([get.security, post.security], [read, write], required);
    assert.deepEqual(
      ['401', '403', '429'].map((status) => status in post.responses),
      required === 'none' ? [false, true, false] : [true, true, true],
    );
    const schemes = required === 'none' ? undefined : { bearer: { type: 'http', scheme: 'bearer' } };
    assert.deepEqual(components.securitySchemes, schemes);
  }
});
