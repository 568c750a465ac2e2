import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import Fastify, { type FastifyBaseLogger } from 'fastify';
import { openFastDoor as open, told } from '../../../test/support/fast-door.ts';
import { captureLog } from '../../../test/support/log-capture.ts';
import { openLog } from '../../observability/log/log.ts';
import { addEndpoint } from '../add-endpoint.ts';
import { FastPath } from './fast-path.ts';
import { nodeInternals } from './node-internals.ts';

const strangeNodes: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'reads with two listeners': (socket) => socket.on('data', () => {}),
  'reads without a listener': (socket) => {
    const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    socket.off('data', parse ?? (() => {}));
    socket.on('readable', () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) parse?.(chunk);
    });
  },
};
for (const [what, change] of Object.entries(strangeNodes)) {
  test(`on a Node that ${what} the fast path closes itself and says so once`, async () => {
    await using door = await open({
      change: ({ server }) => server.on('connection', change),
    });
    for (let i = 0; i < 3; i++) assert.equal(await door.get('/things/a'), 'fastify: a');
    await fetch(`${door.url}/things/a`);
    const warnings = door.log.entries.filter(({ msg }) => msg === 'fast path off: unknown internals of Node');
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0]?.node, process.version);
  });
}

test('on a Node that does not name the reply in progress it closes itself before it answers anything', async () => {
  const log = captureLog();
  const nextId = () => 'id';
  const app = Fastify({
    genReqId: nextId,
    loggerInstance: (await openLog({ level: 'warn', stream: log.stream })) as FastifyBaseLogger,
  });
  const options = {
    errors: { contentType: 'text/plain', body: () => '' },
    log: app.log,
    nextId,
    trustsProxies: false,
    isDraining: () => false,
    exchangeLog: () => undefined,
  };
  const fastPath = new FastPath(app, options, { ...nodeInternals, replyInProgress: () => undefined });
  addEndpoint(app, 'GET', '/', {
    bodyLimit: 0,
    handle: (exchange) => ({ status: 200, type: 'text/plain', body: told(exchange, '') }),
  });
  await app.ready();
  fastPath.install(app);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  for (let i = 0; i < 3; i++) assert.equal(await (await fetch(url)).text(), 'fastify: ');
  assert.deepEqual(
    log.entries.map(({ msg }) => msg),
    ['fast path off: unknown internals of Node'],
  );
  await app.close();
});
