import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { addRoutes } from '../operations.ts';
import { threadDumpEndpoint } from './threaddump.ts';

const threads = [
  {
    id: 0,
    name: 'main',
    stack: [
      { className: 'Pool', methodName: 'take', fileName: 'file:///x/pool.ts', lineNumber: 3, native: false },
      { className: '', methodName: 'map', fileName: undefined, lineNumber: -1, native: true },
    ],
  },
  { id: 2, name: 'writer', stack: [] },
];

async function read(accept?: string) {
  await using app = Fastify();
  addRoutes(app, threadDumpEndpoint(() => threads).routes(app));
  return await app.inject({ url: '/threaddump', headers: accept === undefined ? {} : { accept } });
}

test('as JSON in the shape of Actuator', async () => {
  const response = await read();
  assert.equal(response.headers['content-type'], 'application/vnd.spring-boot.actuator.v3+json');
  assert.equal(response.headers.vary, 'accept');
  const [main, writer] = response.json().threads;
  assert.deepEqual(main, {
    threadName: 'main',
    threadId: 0,
    threadState: 'RUNNABLE',
    blockedTime: -1,
    blockedCount: 0,
    waitedTime: -1,
    waitedCount: 0,
    lockOwnerId: -1,
    daemon: false,
    inNative: false,
    suspended: false,
    priority: 5,
    stackTrace: [
      {
        className: 'Pool',
        methodName: 'take',
        fileName: 'file:///x/pool.ts',
        lineNumber: 3,
        nativeMethod: false,
      },
      { className: '', methodName: 'map', lineNumber: -1, nativeMethod: true },
    ],
    lockedMonitors: [],
    lockedSynchronizers: [],
  });
  assert.equal(writer.threadName, 'writer');
  assert.equal(writer.threadState, 'WAITING');
  assert.deepEqual(writer.stackTrace, []);
});

test('as text for who wants it more', async () => {
  for (const accept of ['text/plain', 'text/plain, */*', 'application/json;q=0.5, text/plain', 'text/*']) {
    const response = await read(accept);
    assert.equal(response.headers['content-type'], 'text/plain;charset=UTF-8', accept);
    assert.match(
      response.body,
      /"main" #0\n {3}State: RUNNABLE\n\tat Pool\.take \(file:\/\/\/x\/pool\.ts:3\)\n\tat map/,
    );
    assert.match(response.body, /"writer" #2\n {3}State: WAITING\n/);
  }
  for (const accept of [
    '*/*',
    'application/json, text/plain;q=0.9',
    'application/json, text/plain',
    'text/html',
  ]) {
    assert.match(String((await read(accept)).headers['content-type']), /json$/, accept);
  }
});
