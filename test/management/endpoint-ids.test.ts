import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  builtInEndpoints,
  consoleEndpoint,
  optInEndpoints,
  takenEndpoints,
} from '../../src/config/options/endpoint-id.ts';
import { startTestService } from '../support/service.ts';

test('the ids that a user cannot take are those of the endpoints that there are', async () => {
  await using service = await startTestService({
    module: 'export default { webhook: { sending: true } };',
    env: { MANAGEMENT_INCLUDE: '*', MANAGEMENT_ACCESS: 'unrestricted' },
  });
  await service.listen();
  const response = await fetch(`${service.urls.management}/actuator`);
  const { _links } = JSON.parse(await response.text());
  const ids = new Set(Object.keys(_links).map((name) => name.split('-')[0]));
  ids.delete('self');
  // A page for people, which no list for programs names.
  ids.add('console');
  assert.deepEqual([...ids].sort(), [...takenEndpoints].sort());
});

test('what is not the standard four has to be asked for', () => {
  assert.deepEqual([...builtInEndpoints], ['health', 'info', 'metrics', 'env']);
  assert.deepEqual(
    [...takenEndpoints].sort(),
    [...builtInEndpoints, consoleEndpoint, ...optInEndpoints].sort(),
  );
});
