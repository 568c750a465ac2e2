import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ERROR_CODES } from '../../src/core/error-codes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { runShown, shownCommand } from '../support/shown-commands.ts';

const SHOWN = shownCommand('docs/ERRORS.md', /^curl /);
const TYPES = 'application/json, application/problem+json';
const WRONG = '{"name":7,"email":"ada"}';
let service: TestService;

before(async () => {
  service = await startTestService({ env: { WEBHOOK_SECRET: 'sesame', LOG_LEVEL: 'debug' } });
  await service.listen();
});
after(() => service[Symbol.asyncDispose]());

async function ask(door: string, path: string, headers: Readonly<Record<string, string>>, body?: string) {
  const init = body === undefined ? { headers } : { headers, method: 'POST', body };
  const reply = await fetch(`${service.urls[door]}${path}`, init);
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

test('problem details have each reason with its place, and the code of the header and the log', async () => {
  const { status, headers, text } = await ask('rest', '/users', { accept: TYPES }, WRONG);
  assert.equal(status, 400);
  assert.equal(headers.get('content-type'), 'application/problem+json');
  assert.equal(headers.get('vary'), 'accept');
  assert.deepEqual(JSON.parse(text), {
    type: 'urn:problem-type:portico:INVALID_USER',
    title: ERROR_CODES.INVALID_USER.text,
    status: 400,
    detail: '"name" is not a string; "email" needs an @ between other characters',
    code: 'INVALID_USER',
    errors: [
      { detail: '"name" is not a string', pointer: '#/name' },
      { detail: '"email" needs an @ between other characters', pointer: '#/email' },
    ],
  });
  assert.equal(headers.get('x-error-code'), 'INVALID_USER');
  const id = headers.get('x-request-id');
  const entry = service.log.entries.find(({ reqId }) => reqId === id);
  assert.equal(entry?.code, 'INVALID_USER');
  assert.match(String(entry?.reason), /"name" is not a string; "email" needs/);
});

test('the reply is the one that the guide shows, which leaves out what it checkpoints', async () => {
  const { stdout } = await runShown(SHOWN, { cwd: service.folder, urls: service.urls });
  const [head = '', body = ''] = stdout.replaceAll('\r', '').split('\n\n');
  const [shownHead = '', shownBody = ''] = (SHOWN.output ?? '').split('\n\n');
  for (const line of shownHead.split('\n')) assert.ok(head.split('\n').includes(line), `${line}\n${head}`);
  const parts = shownBody.replaceAll('\n ', '').split('…');
  const pattern = new RegExp(
    `^${parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*')}$`,
  );
  assert.match(body, pattern);
});

test('a client that does not name problem details gets the bytes of the contract', async () => {
  for (const accept of ['*/*', 'application/*', 'application/json', 'application/problem+json;q=0']) {
    const { headers, text } = await ask('rest', '/users', { accept }, WRONG);
    assert.equal(text, '{"status":"error","message":"Failed to create user"}', accept);
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('vary'), null);
  }
  const unknown = await ask('rest', '/users/9', {});
  assert.deepEqual([unknown.status, unknown.text], [200, '{"status":"error","message":"User not found"}']);
});

test('every door has problem details for what is refused outside of a GraphQL result', async () => {
  const refused = [
    ['rest', '/none', undefined, 404, 'NO_ROUTE'],
    ['rest', '/update', undefined, 405, 'METHOD_NOT_ALLOWED'],
    ['rest', '/users', '{"name"', 400, 'MALFORMED_JSON'],
    ['rest', '/users', ' '.repeat(70_000), 413, 'BODY_TOO_LARGE'],
    ['graphql', '/graphql', '{"query":7}', 400, 'MALFORMED_REQUEST'],
    ['graphql', '/none', undefined, 404, 'NO_ROUTE'],
    ['management', '/actuator/none', undefined, 404, 'NOT_FOUND'],
    ['management', '/actuator/health', '{}', 405, 'METHOD_NOT_ALLOWED'],
    ['webhook', '/webhook', '{}', 401, 'WRONG_TOKEN'],
    ['webhook', '/none', undefined, 404, 'NO_ROUTE'],
  ] as const;
  for (const [door, path, body, status, code] of refused) {
    const headers = { accept: TYPES, 'content-type': 'application/json' };
    const reply = await ask(door, path, headers, body);
    assert.equal(reply.headers.get('content-type'), 'application/problem+json', `${door} ${path}`);
    const problem = JSON.parse(reply.text);
    assert.deepEqual([reply.status, problem.status, problem.code], [status, status, code]);
    assert.equal(problem.type, `urn:problem-type:portico:${code}`);
    assert.notEqual(problem.detail, '');
  }
  const operation = await ask(
    'graphql',
    '/graphql',
    { accept: `application/graphql-response+json, ${TYPES}`, 'content-type': 'application/json' },
    '{"query":"{ nothing }"}',
  );
  assert.match(String(operation.headers.get('content-type')), /^application\/graphql-response\+json/);
});

test('Prefer: handling=strict gives the statuses of HTTP, and says so', async () => {
  const strict = { prefer: 'handling=strict' };
  const unknown = await ask('rest', '/users/999', strict);
  assert.deepEqual([unknown.status, unknown.text], [404, '{"status":"error","message":"User not found"}']);
  assert.equal(unknown.headers.get('preference-applied'), 'handling=strict');
  const both = await ask('rest', '/users/x', { ...strict, accept: TYPES });
  assert.deepEqual([both.status, JSON.parse(both.text).status], [404, 404]);
  assert.equal(both.headers.get('vary'), 'accept, prefer');

  const made = await ask('rest', '/users', strict, '{"name":"Ada","email":"ada@example.org"}');
  assert.deepEqual([made.status, made.headers.get('preference-applied')], [201, 'handling=strict']);
  assert.equal(made.text, '{"status":"success","message":"User created successfully"}');
  const read = await ask('rest', String(made.headers.get('location')), strict);
  assert.deepEqual([read.status, read.headers.get('preference-applied')], [200, null]);
  for (const prefer of [
    'handling=lenient',
    'strict',
    'x="handling=strict"',
    'handling=lenient, handling=strict',
  ]) {
    assert.equal((await ask('rest', '/users/999', { prefer })).status, 200, prefer);
  }
});

test('without strict handling problem details have the status of the contract', async () => {
  const { status, text } = await ask('rest', '/users/999', { accept: TYPES });
  // Without strict handling the contract's status stands, and details say the same as the reply.
  assert.deepEqual([status, JSON.parse(text).status, JSON.parse(text).code], [200, 200, 'USER_NOT_FOUND']);
});
