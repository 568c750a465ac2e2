import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import Fastify from 'fastify';
import { waitFor } from '../../../test/support/wait-for.ts';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import {
  cpuProfileEndpoint,
  heapDumpEndpoint,
  parseFrame,
  readThreads,
  threadDumpEndpoint,
} from './dumps.ts';

type Heap = NonNullable<Parameters<typeof heapDumpEndpoint>[0]>;

describe('cpuprofile', () => {
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
    assert.deepEqual((await app.inject('/cpuprofile')).json(), {
      status: 500,
      error: 'Internal Server Error',
    });
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
});

describe('heapdump', () => {
  const MIB = 1024 * 1024;

  function open(heap: Partial<Heap> = {}) {
    const app = Fastify();
    app.setErrorHandler(refuse);
    const roomy: Heap = {
      used: () => MIB,
      available: () => 100 * MIB,
      snapshot: () => Readable.from(['{}']),
    };
    addRoutes(app, heapDumpEndpoint({ ...roomy, ...heap }).routes(app));
    return app;
  }

  test('a snapshot is sent as a file', async () => {
    await using app = open();
    const { statusCode, headers, body } = await app.inject('/heapdump');
    assert.equal(statusCode, 200);
    assert.equal(headers['content-type'], 'application/octet-stream');
    assert.match(
      String(headers['content-disposition']),
      /^attachment; filename="portico-\d+-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.heapsnapshot"$/,
    );
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(body, '{}');
  });

  test('the snapshot is one that the developer tools read', async () => {
    await using app = Fastify();
    addRoutes(app, heapDumpEndpoint().routes(app));
    const response = await app.inject('/heapdump');
    assert.equal(response.statusCode, 200, response.body);
    const { snapshot, nodes, strings } = response.json();
    assert.ok(snapshot.node_count > 1_000);
    assert.equal(nodes.length, snapshot.node_count * snapshot.meta.node_fields.length);
    assert.ok(strings.length > 1_000);
  });

  test('without the memory for it there is none, and the reply says why', async () => {
    let taken = 0;
    const snapshot = () => {
      taken++;
      return Readable.from(['{}']);
    };
    for (const [available, status] of [
      [249 * MIB, 503],
      [250 * MIB, 200],
    ] as const) {
      await using app = open({ used: () => 100 * MIB, available: () => available, snapshot });
      const response = await app.inject('/heapdump');
      assert.equal(response.statusCode, status);
      if (status === 503) {
        assert.equal(response.headers['content-type'], 'application/json');
        assert.deepEqual(response.json(), {
          status: 503,
          error: 'Service Unavailable',
          message: 'A heap dump may take 250 MiB of memory, and 249 MiB are free',
        });
      }
    }
    assert.equal(taken, 1);
  });

  test('one at a time', async () => {
    const streams: PassThrough[] = [];
    const snapshot = () => {
      const stream = new PassThrough();
      streams.push(stream);
      return stream;
    };
    await using app = open({ snapshot });
    const first = app.inject('/heapdump').then((response) => response);
    await new Promise(setImmediate);
    const second = await app.inject('/heapdump');
    assert.equal(second.statusCode, 429);
    assert.match(second.json().message, /under way/);
    assert.ok(Number(second.headers['retry-after']) > 0);
    streams[0]?.end('{}');
    assert.equal((await first).statusCode, 200);
    const third = app.inject('/heapdump').then((response) => response);
    await new Promise(setImmediate);
    streams[1]?.end('{}');
    assert.equal((await third).statusCode, 200);
  });

  test('a snapshot that fails lets the next one begin', async () => {
    let fails = true;
    const snapshot = () => {
      if (fails) throw new Error('no snapshot');
      return Readable.from(['{}']);
    };
    await using app = open({ snapshot });
    assert.equal((await app.inject('/heapdump')).statusCode, 500);
    fails = false;
    assert.equal((await app.inject('/heapdump')).statusCode, 200);
  });

  test('HEAD takes none', async () => {
    await using app = open({
      snapshot() {
        throw new Error('taken');
      },
    });
    const { statusCode, headers } = await app.inject({ method: 'HEAD', url: '/heapdump' });
    assert.equal(statusCode, 200);
    assert.match(String(headers['content-disposition']), /heapsnapshot/);
  });
});

describe('threaddump', () => {
  const threads = [
    {
      id: 0,
      name: 'main',
      stack: [
        {
          className: 'Pool',
          methodName: 'take',
          fileName: 'file:///x/pool.ts',
          lineNumber: 3,
          native: false,
        },
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
});

describe('thread report', () => {
  const frame = (
    className: string,
    methodName: string,
    fileName: string | undefined,
    lineNumber: number,
    native = false,
  ) => ({
    className,
    methodName,
    fileName,
    lineNumber,
    native,
  });

  test('rows of stacks in all their forms', () => {
    for (const [row, expected] of [
      ['at Pool.take (file:///x/pool.ts:3:7)', frame('Pool', 'take', 'file:///x/pool.ts', 3)],
      ['    at take (/x/a b (1)/pool.ts:3:7)', frame('', 'take', '/x/a b (1)/pool.ts', 3)],
      ['at file:///x/pool.ts:3:7', frame('', '<anonymous>', 'file:///x/pool.ts', 3)],
      ['at async Pool.take (file:///x/pool.ts:3:7)', frame('Pool', 'take', 'file:///x/pool.ts', 3)],
      ['at new Pool (file:///x/pool.ts:3:7)', frame('', 'Pool', 'file:///x/pool.ts', 3)],
      ['at Pool.a [as b] (file:///x/pool.ts:3:7)', frame('Pool', 'a', 'file:///x/pool.ts', 3)],
      ['at  ([worker eval]:1:26)', frame('', '<anonymous>', '[worker eval]', 1)],
      ['at Array.map (<anonymous>)', frame('Array', 'map', undefined, -1)],
      ['at JSON.parse (native)', frame('JSON', 'parse', undefined, -1, true)],
      [
        'at listOnTimeout (node:internal/timers:685:17)',
        frame('', 'listOnTimeout', 'node:internal/timers', 685, true),
      ],
    ] as const) {
      assert.deepEqual(parseFrame(row), expected, row);
    }
    for (const row of ['', 'Unavailable.', 'Error: at', 'x at y'])
      assert.equal(parseFrame(row), undefined, row);
  });

  test('the main thread and every worker, each with what it does', async () => {
    const busy = 'postMessage("up"); for (;;) ;'.replace(
      'postMessage',
      'require("worker_threads").parentPort.postMessage',
    );
    const idle = 'require("worker_threads").parentPort.on("message", () => {}).postMessage("up");';
    const workers = [
      new Worker(busy, { eval: true, name: 'busy one' }),
      new Worker(idle, { eval: true, name: 'idle one' }),
    ];
    try {
      await Promise.all(workers.map((worker) => once(worker, 'message')));
      const [main, ...others] = readThreads();
      assert.equal(main?.name, 'main');
      assert.equal(main?.id, 0);
      assert.ok(main?.stack.some(({ methodName }) => methodName === 'readThreads'));
      const named = new Map(others.map((thread) => [thread.name, thread]));
      assert.deepEqual([...named.keys()], ['busy one', 'idle one']);
      assert.equal(named.get('busy one')?.stack[0]?.fileName, '[worker eval]');
      await waitFor('the idle worker to come to rest', () =>
        readThreads().some(({ name, stack }) => name === 'idle one' && stack.length === 0),
      );
    } finally {
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
  });
});
