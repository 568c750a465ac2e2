import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { openFastDoor as open } from '../../../test/support/fast-door.ts';

const strangeNodes: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'reads with two listeners': (socket) => socket.on('data', () => {}),
  'reads without a listener': (socket) => {
    const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    socket.off('data', parse ?? (() => {}));
    socket.on('readable', () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) parse?.(chunk);
    });
  },
  'ends with three listeners': (socket) => socket.on('end', () => {}),
  'ends with other listeners': (socket) => {
    const listeners = socket.listeners('end') as (() => void)[];
    socket.removeAllListeners('end');
    for (const listener of listeners) socket.on('end', () => listener.call(socket));
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
