import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay, setImmediate as tick } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { warmUp } from '../../../test/support/connections.ts';
import { openFastDoor as open, openFastDoor, told } from '../../../test/support/fast-door.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { RequestContext } from '../endpoint.ts';
import { LIMITS } from '../server/limits.ts';

describe('fast connection', () => {
  const get = (param: string) => `GET /things/${param} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const post = (body: string) =>
    `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  /** Waits, and until what was sent before is read: on a busy machine a timer may be due together with the bytes. */
  async function pause(milliseconds: number): Promise<void> {
    await delay(milliseconds);
    for (let ticks = 0; ticks < 2; ticks++) await tick();
  }

  /** A connection that says what it is told to. */
  function dial(url: string) {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true });
    let text = '';
    let closed = false;
    // Each write is a segment of its own.
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => {
      closed = true;
    });
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
    });
    return {
      socket,
      text: () => text,
      closed: () => closed,
      /** Sends bytes and resolves to the first reply that they bring. */
      async ask(bytes: string): Promise<string> {
        const before = text.length;
        socket.write(bytes);
        let reply: string | undefined;
        await waitFor('the reply', () => {
          const [head = '', body = ''] = text.slice(before).split('\r\n\r\n', 2);
          const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY);
          reply = body.slice(0, length);
          return body.length >= length;
        });
        return reply ?? '';
      },
      [Symbol.dispose]: () => socket.destroy(),
    };
  }

  /** Replies that are held back until they are let go, each with what was sent. */
  function heldBack() {
    const waiting: (() => void)[] = [];
    return {
      waiting,
      echo: (ctx: RequestContext) =>
        new Promise<string>((resolve) => waiting.push(() => resolve(told(ctx, ctx.body)))),
    };
  }

  /** A connection behind its first request whose second one, POST /echo of "1", waits for its reply. */
  async function askHeldBack(change: (app: FastifyInstance) => unknown = () => {}) {
    const { waiting, echo } = heldBack();
    const door = await openFastDoor({ echo, change });
    const client = dial(door.url);
    await warmUp(client.socket);
    client.socket.write(post('1'));
    await waitFor('the request', () => waiting.length === 1);
    return {
      door,
      client,
      waiting,
      async [Symbol.asyncDispose]() {
        client.socket.destroy();
        await door[Symbol.asyncDispose]();
      },
    };
  }

  test('the first request of a connection is Fastify’s, plain ones behind it are the fast path’s', async () => {
    await using door = await openFastDoor();
    using client = dial(door.url);
    assert.equal(await client.ask(get('a')), 'fastify: a');
    assert.equal(await client.ask(get('a')), 'fast: a');
    assert.match(await client.ask('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'), /not found/);
    assert.equal(await client.ask(post('b')), 'fast: b');
  });

  test('a body that is late is Fastify’s, and what comes behind it the fast path’s again', async () => {
    await using door = await openFastDoor();
    using client = dial(door.url);
    await client.ask(get('a'));
    client.socket.write(post('abc').slice(0, -2));
    await pause(100);
    assert.equal(await client.ask('bc'), 'fastify: abc');
    assert.equal(await client.ask(post('d')), 'fast: d');
  });

  test('a client that writes head and body apart has the fast path', async () => {
    await using door = await openFastDoor();
    assert.equal(await door.post('/echo', 'a'), 'fast: a');
  });

  const CHUNKED = 'POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const [what, pieces, replies] of [
    ['a chunked body', [CHUNKED, '1\r\nx\r\n0\r\n\r\n'], /fastify: x$/],
    ['a request behind another in one piece', [get('a') + get('b')], /fastify: a[\s\S]+fastify: b$/],
    ['a head in two pieces', [get('a').slice(0, 20), get('a').slice(20)], /fastify: a$/],
    [
      'more than the rest of a body',
      [post('abc').slice(0, -1), `c${post('d')}`],
      /fastify: abc[\s\S]+fastify: d$/,
    ],
  ] as const) {
    test(`${what} leaves the connection to Fastify for good`, async () => {
      await using door = await openFastDoor();
      using client = dial(door.url);
      await client.ask(get('a'));
      assert.equal(await client.ask(get('a')), 'fast: a');
      const before = client.text().length;
      for (const piece of pieces) {
        client.socket.write(piece);
        await pause(10);
      }
      await waitFor('the replies', () => replies.test(client.text().slice(before)));
      assert.equal(await client.ask(get('a')), 'fastify: a');
    });
  }

  test('a request that ends in the middle is refused at once', async () => {
    await using door = await openFastDoor();
    using client = dial(door.url);
    await client.ask(get('a'));
    client.socket.end(post('abc').slice(0, -1));
    await waitFor('the refusal', () => /HTTP\/1\.1 400 /.test(client.text()));
  });

  test("what comes while a request is being answered is Fastify's for good, and has its reply in its turn", async () => {
    await using asked = await askHeldBack();
    const { client, waiting } = asked;
    client.socket.write(post('2'));
    await pause(20);
    client.socket.write(get('3'));
    await pause(20);
    assert.equal(waiting.length, 1);
    waiting[0]?.();
    await waitFor('the second', () => waiting.length === 2);
    waiting[1]?.();
    await waitFor('the third reply', () => client.text().endsWith('fastify: 3'));
    assert.deepEqual(client.text().match(/fast\w*: \d/g), ['fast: 1', 'fastify: 2', 'fastify: 3']);
    assert.equal(await client.ask(get('4')), 'fastify: 4');
  });

  test('a reply that its client does not read keeps the next request waiting', async () => {
    const LARGE = 'x'.repeat(8 * 1024 * 1024);
    let asked = 0;
    await using door = await openFastDoor({
      echo() {
        asked++;
        return LARGE;
      },
    });
    using client = dial(door.url);
    await warmUp(client.socket);
    client.socket.pause();
    client.socket.write(post('1'));
    await waitFor('the first', () => asked === 1);
    client.socket.write(post('2'));
    await pause(50);
    assert.equal(asked, 1);
    client.socket.resume();
    await waitFor('both replies', () => client.text().length > 2 * LARGE.length);
  });

  test('a stop waits for the reply, which closes the connection', async () => {
    await using asked = await askHeldBack();
    const { door, client, waiting } = asked;
    const closing = door.listener.close(new AbortController().signal);
    await pause(100);
    waiting[0]?.();
    await closing;
    await waitFor('the end', () => client.text().endsWith('fast: 1'));
    assert.match(client.text(), /HTTP\/1\.1 200 OK\r\nconnection: close\r\n/);
  });

  test('during a stop nobody new is let in while the fast path is busy, and the others end behind it', async () => {
    const { waiting, echo } = heldBack();
    await using door = await openFastDoor({ echo });
    using client = dial(door.url);
    using idle = dial(door.url);
    await warmUp(client.socket);
    await warmUp(idle.socket);
    client.socket.write(post('1'));
    await waitFor('the request', () => waiting.length === 1);
    const closing = door.app.close();
    await waitFor('the end of the listening', async () => {
      using late = dial(door.url);
      await waitFor('an end', () => late.closed() || late.text() !== '', 50).catch(() => {});
      return late.closed();
    });
    waiting[0]?.();
    idle.socket.on('end', () => idle.socket.end());
    client.socket.on('end', () => client.socket.end());
    await closing;
    await waitFor('the reply', () => client.text().endsWith('fast: 1'));
  });

  test('a stop cuts whoever comes behind its deadline, while a hook of somebody holds it up', async () => {
    await using asked = await askHeldBack((app) =>
      app.addHook('preClose', () => delay(200)).get('/never', () => new Promise(() => {})),
    );
    const { door } = asked;
    const closing = door.listener.close(AbortSignal.timeout(50));
    await delay(75);
    using late = dial(door.url);
    late.socket.write('GET /never HTTP/1.1\r\nHost: x\r\n\r\n');
    late.socket.on('end', () => late.socket.end());
    await waitFor('the cut', () => late.closed());
    await closing;
  });

  test('a stop cuts a reply that does not come in time', async () => {
    await using asked = await askHeldBack();
    const { door, waiting } = asked;
    await door.listener.close(AbortSignal.timeout(50));
    waiting[0]?.();
  });

  test('a reply to a client that has just gone is no reply', async () => {
    await using asked = await askHeldBack();
    const { door, client, waiting } = asked;
    const before = door.recorded.length;
    client.socket.resetAndDestroy();
    // Before the loop hears of it: the write itself fails.
    waiting[0]?.();
    assert.equal(await door.get('/things/a'), 'fast: a');
    assert.deepEqual(door.recorded.slice(before), ['GET /things/:param 200']);
  });

  test('a client that closes its half before the reply harms nobody', async () => {
    const { waiting, echo } = heldBack();
    await using door = await openFastDoor({ echo });
    using client = dial(door.url);
    await warmUp(client.socket);
    client.socket.end(post('1'));
    await waitFor('the request', () => waiting.length === 1);
    waiting[0]?.();
    assert.equal(await door.get('/things/a'), 'fast: a');
  });

  test('the last request that a connection may have closes it', async () => {
    await using door = await openFastDoor();
    using client = dial(door.url);
    let reply = '';
    let left: number = LIMITS.maxRequestsPerConnection;
    client.socket.on('data', (piece: Buffer) => {
      reply = piece.toString('latin1');
      left--;
      if (left > 0) client.socket.write(get('a'));
    });
    client.socket.write(get('a'));
    await waitFor('the last reply', () => left === 0);
    assert.match(reply, /\r\nconnection: close\r\n[\s\S]*fast: a$/);
    client.socket.end();
    await waitFor('the end', () => client.closed());
  });

  test('a reply may take longer than a connection may be idle, which holds again behind it', async () => {
    await using asked = await askHeldBack();
    const { client, waiting } = asked;
    await delay(LIMITS.keepAliveTimeout + 2_500);
    assert.equal(client.closed(), false);
    waiting[0]?.();
    await waitFor('the reply', () => client.text().endsWith('fast: 1'));
    client.socket.end = () => client.socket;
    client.socket.on('end', () => client.socket.destroy());
    await waitFor('the end of the idle connection', () => client.closed(), LIMITS.idleReplyTimeout / 2);
  });
});

describe('node reader', () => {
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
      const warnings = door.log.entries.filter(
        ({ msg }) => msg === 'fast path off: unknown internals of Node',
      );
      assert.equal(warnings.length, 1);
      assert.equal(warnings[0]?.node, process.version);
    });
  }
});
