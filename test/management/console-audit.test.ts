import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

interface AuditEvent {
  readonly type: string;
  readonly principal: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

test('what is done in the console is kept as an audit event', async () => {
  const env = {
    MANAGEMENT_INCLUDE: 'console,auditevents',
    MANAGEMENT_USER: 'ops',
    MANAGEMENT_PASSWORD: 'password',
  };
  await using service = await startTestService({ env });
  await service.listen();
  const headers = {
    authorization: `Basic ${btoa('ops:password')}`,
    'x-portico-console': '1',
    'content-type': 'application/json',
  };
  const base = `${service.urls.management}/actuator`;
  const act = async (method: string, path: string, body?: object) => {
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const { status } = await fetch(`${base}/console/api/${path}`, init);
    assert.ok(status < 300, `${path} ${status}`);
  };
  await act('POST', 'loggers/rest', { configuredLevel: 'debug' });
  await act('POST', 'users', { name: 'Ada', email: 'ada@example.org' });
  await act('DELETE', 'users/1');
  await act('POST', 'test-deliveries', { source: '', event: 'new_commit', data: {} });
  const events = await waitFor('the events', async () => {
    const reply = await fetch(`${base}/auditevents`, { headers });
    const kept = ((await reply.json()) as { readonly events: readonly AuditEvent[] }).events;
    return kept.length >= 4 && kept;
  });
  const told = events.map(({ principal, type, data }) => [principal, type, data?.endpoint, data?.method]);
  assert.deepEqual(told.map(String).sort(), [
    'ops,ENDPOINT_WRITTEN,test-deliveries,POST',
    'ops,ENDPOINT_WRITTEN,users,DELETE',
    'ops,ENDPOINT_WRITTEN,users,POST',
    'ops,LOGGER_LEVEL_CHANGED,loggers,',
  ]);
});
