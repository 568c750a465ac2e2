import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
const post = (body: string): RequestInit => ({ method: 'POST', body, headers: JSON_HEADERS });

/** By door: a request that is refused, its code and what the log says of it. */
const refusals: readonly (readonly [string, string, RequestInit, string, RegExp])[] = [
  ['rest', '/users', post('{"name":"x"}'), 'INVALID_USER', /"email" is missing/],
  ['rest', '/users', post('{"name":7,"email":"a@b"}'), 'INVALID_USER', /"name" is not a string/],
  ['rest', '/users', post('{"name":"x"'), 'MALFORMED_JSON', /JSON/],
  ['rest', '/none?secret=1', {}, 'NO_ROUTE', /no resource/i],
  ['rest', '/users', { method: 'PATCH' }, 'METHOD_NOT_ALLOWED', /method/],
  [
    'rest',
    '/update/7',
    { ...post('{"name":"x","email":"a@b"}'), method: 'PUT' },
    'USER_NOT_FOUND',
    /no user/,
  ],
  ['rest', '/delete/x', { method: 'DELETE' }, 'USER_NOT_FOUND', /no user/],
  ['graphql', '/graphql', post('{"query":"{ nothing }"}'), 'INVALID_DOCUMENT', /nothing/],
  ['graphql', '/graphql', post('{'), 'MALFORMED_JSON', /JSON/],
  ['graphql', '/none', {}, 'NO_ROUTE', /Not Found/],
  ['webhook', '/webhook', post('{'), 'MALFORMED_JSON', /JSON/],
  ['webhook', '/none', {}, 'NO_ROUTE', /Not Found/],
  ['management', '/actuator/none', {}, 'NOT_FOUND', /endpoint/],
  ['management', '/actuator/health', { method: 'DELETE' }, 'METHOD_NOT_ALLOWED', /method/],
];

test('each refusal of each door says why in the log, at debug, with the code of its reply', async () => {
  await using place = await temporaryFolder();
  await using portico = startPortico({ cwd: place.path, env: { LOG_LEVEL: 'debug' } });
  await portico.ready();
  for (const [door, path, init, code, reason] of refusals) {
    const reply = await fetch(`${portico.urls[door]}${path}`, init);
    await reply.text();
    assert.equal(reply.headers.get('x-error-code'), code, `${door} ${path}`);
    const id = reply.headers.get('x-request-id');
    const entry = await waitFor('the entry', () => portico.logs().find(({ reqId }) => reqId === id));
    const { level, logger, msg, status, method, path: logged } = entry;
    assert.deepEqual(
      { level, logger, msg, code: entry.code, status, method },
      {
        level: 'debug',
        logger: door,
        msg: 'request refused',
        code,
        status: reply.status,
        method: init.method ?? 'GET',
      },
    );
    assert.match(String(entry.reason), reason);
    assert.ok(logged === undefined || logged === path.split('?')[0]);
  }
  const socket = connect(Number(new URL(portico.urls.rest ?? '').port), '127.0.0.1');
  let text = '';
  socket.on('data', (piece) => {
    text += piece;
  });
  socket.write('no HTTP\r\n\r\n');
  await waitFor('the refusal', () => /^x-error-code: HPE_INVALID_METHOD$/im.test(text));
  await waitFor('its entry', () => portico.logs().some(({ code }) => code === 'HPE_INVALID_METHOD'));
});

test('what is logged follows the level that a logger is given while the service runs', async () => {
  await using place = await temporaryFolder();
  await using portico = startPortico({ cwd: place.path, env: { MANAGEMENT_INCLUDE: '*' } });
  await portico.ready();
  const refused = async () => {
    const reply = await fetch(`${portico.urls.rest}/users`, post('{}'));
    await reply.text();
    return reply.headers.get('x-request-id');
  };
  const level = (configuredLevel: string | null) =>
    fetch(`${portico.urls.management}/actuator/loggers/rest`, post(JSON.stringify({ configuredLevel })));
  const quiet = await refused();
  assert.equal((await level('DEBUG')).status, 204);
  const told = await refused();
  await waitFor('the entry', () => portico.logs().find(({ reqId }) => reqId === told));
  assert.equal((await level(null)).status, 204);
  const again = await refused();
  await refused();
  assert.deepEqual(
    portico.logs().filter(({ reqId }) => reqId === quiet || reqId === again),
    [],
  );
});
