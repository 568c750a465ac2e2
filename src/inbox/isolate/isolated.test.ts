import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { pino } from 'pino';
import { captureLog } from '../../../test/support/log-capture.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { ClaimedJob } from '../delivery.ts';
import { LeaseLostError } from '../dispatch/attempt.ts';
import { UncountedError } from '../dispatch/target.ts';
import { isolatedTarget, ThreadPool, UnreadEntries, withIsolation } from './isolated.ts';

describe('isolated handlers', () => {
  const handler = () => {};

  test('a handler is isolated when it says so, or the default says so, with few threads', () => {
    const handlers = new Map([
      ['unsaid', { handler }],
      ['inside', { handler, isolate: false }],
      ['isolated', { handler, isolate: true }],
      ['wide', { handler, isolate: true, concurrency: 9 }],
    ]);
    const read = (isolate: boolean, concurrency: number) =>
      Array.from(withIsolation(handlers, { isolate, concurrency }), ([, spec]) => [
        spec.isolate,
        spec.concurrency,
      ]);
    assert.deepEqual(read(false, 16), [
      [false, undefined],
      [false, undefined],
      [true, 4],
      [true, 9],
    ]);
    assert.deepEqual(read(true, 2), [
      [true, 2],
      [false, undefined],
      [true, 2],
      [true, 9],
    ]);
  });
});

describe('isolated target', () => {
  const HANDLERS = `
  waits: (_, { signal, log }) => new Promise((resolve) => {
    log.info('begins');
    signal.addEventListener('abort', () => { log.info({ code: signal.reason.code }, 'told'); resolve(); });
  }),
  spins: (_, { log }) => { log.info('begins'); for (;;); },
  // Its timer ends the thread while a later delivery runs in it.
  leaves: () => {
    const look = setInterval(() => { if (globalThis.next) process.exit(9); }, 1);
    look.unref();
  },
  next: () => { globalThis.next = true; return new Promise(() => {}); },
  echo: ({ data, receivedAt, ...rest }, { log }) => log.info({ data, date: receivedAt instanceof Date, rest }, 'got'),
`;

  async function start(text = `export default { webhook: { handlers: { ${HANDLERS} } } };`) {
    await using building = new AsyncDisposableStack();
    const folder = building.use(await temporaryFolder());
    const file = join(folder.path, 'portico.config.mjs');
    await writeFile(file, text);
    const log = captureLog();
    const pool = building.use(new ThreadPool({ file, memory: 64, log: pino(log.stream) }));
    const limits = { concurrency: 1, timeout: 60_000, maxAttempts: 1, backoff: { base: 0, cap: 0 } };
    const run = (event: string, signal = new AbortController().signal, body = '{"data":1}') =>
      isolatedTarget({ name: event, run: () => {}, ...limits }, event, pool).run(
        jobWith(body),
        signal,
        () => {},
      );
    const logged = (msg: string) => waitFor(msg, () => log.entries.find((entry) => entry.msg === msg));
    const resources = building.move();
    return { pool, run, logged, log, [Symbol.asyncDispose]: () => resources.disposeAsync() };
  }

  function jobWith(text: string): ClaimedJob {
    // As a part of a larger buffer, as the engines give it.
    const body = Buffer.from(`${' '.repeat(10_000)}${text}`).subarray(10_000);
    const id = randomUUIDv7();
    const delivery = {
      id,
      source: '',
      event: 'e',
      dataPointer: '/data',
      contentType: null,
      body,
      receivedAt: 7,
    };
    return { job: 1, target: 't', attempt: 3, crashes: 0, ordered: false, delivery };
  }

  test('a handler gets its delivery as it does in the main thread', async () => {
    await using isolated = await start();
    await isolated.run('echo', undefined, '{"data":{"n":12345678901,"s":"\\u2028"}}');
    const { data, date, rest } = await isolated.logged('got');
    assert.deepEqual([data, date], [{ n: 12345678901, s: '\u2028' }, true]);
    const { event, source, attempt } = rest as Record<string, unknown>;
    assert.deepEqual([event, source, attempt], ['echo', '', 3]);
  });

  test('an aborted signal reaches the handler with its reason, and the thread is used again', async () => {
    await using isolated = await start();
    const abort = new AbortController();
    const ended = isolated.run('waits', abort.signal);
    await isolated.logged('begins');
    abort.abort(new LeaseLostError());
    await ended;
    assert.equal((await isolated.logged('told')).code, 'LEASE_LOST');
    await isolated.run('echo');
    assert.equal(isolated.pool.size, 1);
  });

  test('a handler that ignores it ends with its thread', async () => {
    await using isolated = await start();
    const abort = new AbortController();
    const ended = isolated.run('spins', abort.signal);
    await isolated.logged('begins');
    abort.abort(new Error('stop'));
    await assert.rejects(async () => ended, /its worker thread ended/);
    await waitFor('it to be gone', () => isolated.pool.size === 0);
    await isolated.run('echo');
  });

  test('one that is aborted while its thread starts does not begin', async () => {
    await using isolated = await start();
    const reason = new Error('stop');
    await assert.rejects(async () => isolated.run('spins', AbortSignal.abort(reason)), reason);
    await isolated.run('echo');
    assert.equal(isolated.pool.size, 1, 'the thread goes on to start');
  });

  test('a delivery whose thread is ended by an earlier one is not to blame', async () => {
    await using isolated = await start();
    await isolated.run('leaves');
    await assert.rejects(async () => isolated.run('next'), UncountedError);
    await isolated.run('echo');
  });

  test('a module that cannot be imported in a thread, or has no such handler there, is said', async () => {
    {
      await using isolated = await start('throw new Error("no database");');
      await assert.rejects(
        async () => isolated.run('echo'),
        /AttemptError: its worker thread ended: the configuration module cannot be imported, Error: no database/,
      );
    }
    await using isolated = await start('export default {};');
    await assert.rejects(async () => isolated.run('echo'), /has no handler for "echo" in a worker thread/);
  });
});

describe('unread entries', () => {
  const THREAD = `
import { parentPort, workerData } from 'node:worker_threads';
const { UnreadEntries } = await import(workerData.module);
const unread = new UnreadEntries(workerData.buffer);
unread.wrote({ fields: '', message: 'x'.repeat(2_000_000) });
parentPort.postMessage('one');
unread.wrote({ fields: '', message: 'x' });
Atomics.store(new Int32Array(workerData.passed), 0, 1);
Atomics.notify(new Int32Array(workerData.passed), 0);
`;

  test('a thread with too many unread entries waits until they are read', async () => {
    const unread = new UnreadEntries();
    const passed = new SharedArrayBuffer(4);
    const module = new URL('./isolated.ts', import.meta.url).href;
    const code = new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`);
    const worker = new Worker(code, { workerData: { module, buffer: unread.buffer, passed } });
    const exited = once(worker, 'exit');
    await once(worker, 'message');
    assert.equal(Atomics.wait(new Int32Array(passed), 0, 0, 200), 'timed-out');
    unread.read({ fields: '', message: 'x'.repeat(2_000_000) });
    await exited;
    assert.equal(new Int32Array(passed)[0], 1);
  });
});
