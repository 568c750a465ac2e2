import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { waitFor } from '../../../test/support/wait-for.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { cpuProfileEndpoint } from './cpuprofile.ts';

/** A profiler that ends when it is told to, or when its signal fires. */
function profiler() {
  const asked: number[] = [];
  let end = () => {};
  const record = (milliseconds: number, signal: AbortSignal) => {
    asked.push(milliseconds);
    return new Promise<string>((resolve) => {
      end = () => resolve('{"whole":true}');
      signal.addEventListener('abort', () => resolve('{"whole":false}'));
    });
  };
  return { asked, record, end: () => end() };
}

function open(record?: Parameters<typeof cpuProfileEndpoint>[0]) {
  const app = Fastify();
  app.setErrorHandler(refuse);
  addRoutes(app, cpuProfileEndpoint(record).routes(app));
  return app;
}

test('a profile of a second, as a file that the developer tools read', async () => {
  await using app = open();
  const { statusCode, headers, body } = await app.inject('/cpuprofile?seconds=1');
  assert.equal(statusCode, 200);
  assert.equal(headers['content-type'], 'application/octet-stream');
  assert.match(
    String(headers['content-disposition']),
    /^attachment; filename="portico-[\dT-]+\.cpuprofile"$/,
  );
  const { nodes, startTime, endTime, samples } = JSON.parse(body);
  assert.ok(nodes.length > 0 && samples.length > 0);
  const seconds = (endTime - startTime) / 1e6;
  assert.ok(seconds >= 0.9, `${seconds} s`);
});

test('seconds are from 1 to 60, and 10 when nobody says', async () => {
  for (const [query, milliseconds] of [
    ['', 10_000],
    ['?seconds=1', 1_000],
    ['?seconds=60', 60_000],
  ] as const) {
    const { asked, record, end } = profiler();
    await using app = open(record);
    const reply = app.inject(`/cpuprofile${query}`).then((response) => response);
    await new Promise(setImmediate);
    end();
    assert.equal((await reply).statusCode, 200);
    assert.deepEqual(asked, [milliseconds]);
  }
  for (const seconds of ['0', '61', '-1', '1.5', 'x', '', '01', '1&seconds=2', '100']) {
    const { asked, record } = profiler();
    await using app = open(record);
    const response = await app.inject(`/cpuprofile?seconds=${seconds}`);
    assert.equal(response.statusCode, 400, seconds);
    assert.match(response.json().message, /from 1 to 60/);
    assert.deepEqual(asked, []);
  }
});

test('one at a time', async () => {
  const { record, end } = profiler();
  await using app = open(record);
  const first = app.inject('/cpuprofile').then((response) => response);
  await new Promise(setImmediate);
  const second = await app.inject('/cpuprofile');
  assert.equal(second.statusCode, 429);
  assert.ok(Number(second.headers['retry-after']) > 0);
  end();
  assert.equal((await first).body, '{"whole":true}');
});

test('a profiler that fails is 500 and lets the next one begin', async () => {
  let fails = true;
  await using app = open(async () => {
    if (fails) throw new Error('inside');
    return '{}';
  });
  assert.deepEqual((await app.inject('/cpuprofile')).json(), { status: 500, error: 'Internal Server Error' });
  fails = false;
  assert.equal((await app.inject('/cpuprofile')).statusCode, 200);
});

test('a stop does not wait for it, and neither does it go on for a client who left', async () => {
  const { asked, record } = profiler();
  await using app = open(record);
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const abort = new AbortController();
  const left = fetch(`${url}/cpuprofile?seconds=60`, { signal: abort.signal });
  await waitFor('the profile to begin', () => asked.length === 1);
  abort.abort();
  await assert.rejects(left, { name: 'AbortError' });
  // Only once the first one has ended is there room for another.
  const replies: Response[] = [];
  const another = await waitFor('room for another profile', async () => {
    const reply = fetch(`${url}/cpuprofile?seconds=60`).then((response) => replies.push(response));
    await waitFor('an answer', () => asked.length === 2 || replies.length > 0);
    return replies.pop() === undefined ? { reply } : undefined;
  });
  await app.close();
  await another.reply;
  assert.equal(replies[0]?.status, 200);
  assert.equal(await replies[0].text(), '{"whole":false}');
});

test('HEAD records nothing', async () => {
  const { asked, record } = profiler();
  await using app = open(record);
  assert.equal((await app.inject({ method: 'HEAD', url: '/cpuprofile' })).statusCode, 200);
  assert.deepEqual(asked, []);
});
