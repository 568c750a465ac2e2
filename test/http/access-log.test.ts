import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepConnection } from '../support/connections.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

for (const fastPath of ['true', 'false']) {
  test(`an entry for each request, when it is asked for; fast path: ${fastPath}`, async () => {
    await using place = await temporaryFolder();
    await using portico = startPortico({
      cwd: place.path,
      env: {
        LOG_REQUESTS: 'true',
        HTTP_FAST_PATH: fastPath,
        MANAGEMENT_INCLUDE: '*',
        TRUST_PROXY: 'loopback',
      },
    });
    await portico.ready();
    using connection = await keepConnection(portico.urls.rest ?? '');
    const asked = [
      await connection.ask('/users/1'),
      await connection.ask('/users/1?token=secret'),
      await connection.ask('/users', { method: 'POST', body: '{' }),
      await connection.ask('/users/2', { headers: { 'x-forwarded-for': '192.0.2.7' } }),
    ];
    const ids = asked.map(({ headers }) => headers['x-request-id']);
    const entries = await waitFor('the entries', () => {
      const found = portico
        .logs()
        .filter(({ msg, reqId }) => msg === 'request' && ids.includes(String(reqId)));
      return found.length === ids.length ? found : undefined;
    });
    const usual = { level: 'info', logger: 'rest', client: '127.0.0.1', method: 'GET', status: 200 };
    assert.deepEqual(
      entries.map(({ level, logger, client, method, path, status }) => ({
        level,
        logger,
        client,
        method,
        path,
        status,
      })),
      [
        { ...usual, path: '/users/1' },
        { ...usual, path: '/users/1' },
        { ...usual, method: 'POST', path: '/users', status: 400 },
        { ...usual, client: '192.0.2.7', path: '/users/2' },
      ],
    );
    for (const { durationMs } of entries) assert.equal(typeof durationMs, 'number');
    const recorded = await fetch(`${portico.urls.management}/actuator/httpexchanges`);
    assert.ok((await recorded.text()).includes('/users/2'), 'recorded for httpexchanges too');
  });
}
