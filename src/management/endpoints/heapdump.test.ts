import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import Fastify from 'fastify';
import { refuse } from '../management-errors.ts';
import { addRoutes } from '../operations.ts';
import { type Heap, heapDumpEndpoint } from './heapdump.ts';

const MIB = 1024 * 1024;

function open(heap: Partial<Heap> = {}) {
  const app = Fastify();
  app.setErrorHandler(refuse);
  const roomy: Heap = { used: () => MIB, available: () => 100 * MIB, snapshot: () => Readable.from(['{}']) };
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
