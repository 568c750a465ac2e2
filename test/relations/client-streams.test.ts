import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { type ChangeEvent, client, PorticoError } from 'portico/client';

/** The error that the service's reply has become. */
async function refusal(work: () => Promise<unknown>): Promise<PorticoError> {
  const error = await work().then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof PorticoError, String(error));
  return error;
}

/** A server that answers each request with the next function. */
async function scripted(...replies: readonly ((response: ServerResponse, lastEventId: unknown) => void)[]) {
  const rest = [...replies];
  const server = createServer((request, response) => {
    const reply = rest.shift();
    if (reply === undefined) response.writeHead(403).end();
    else reply(response, request.headers['last-event-id']);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const data = (key: string) =>
  `data: ${JSON.stringify({ position: 1, relation: 'a', type: 'created', key, row: { key } })}`;

test('a stream is read over any cuts, and goes on behind its last event until a refusal', async () => {
  const seen: unknown[] = [];
  const bytes = Buffer.from(
    `retry: 1\nid: 5.5\n\n: comment\n\nid:6.6\r\nevent: x\r\n${data('é\u{1f600}')}\r\n\r\nid: 7.7\n${data('lost')}\n`,
  );
  await using server = await scripted(
    async (response, last) => {
      seen.push(last);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const byte of bytes) response.write(Uint8Array.of(byte));
      // The last event is incomplete.
      response.end();
    },
    (response, last) => {
      seen.push(last);
      response.writeHead(503, { 'retry-after': '0' }).end('<html>');
    },
    (response, last) => {
      seen.push(last);
      response.destroy();
    },
    (response, last) => {
      seen.push(last);
      response.writeHead(200).end(`id: 8.8\n${data('two')}\n\nid: 9.9\n\n`);
    },
  );
  let wasWaitedFor = false;
  const onOpen = async () => {
    await setTimeout(50);
    wasWaitedFor = true;
  };
  const events: ChangeEvent[] = [];
  const refused = await refusal(async () => {
    for await (const event of client(server.url).relation('a').follow({ onOpen })) {
      assert.ok(wasWaitedFor);
      events.push(event);
    }
  });
  assert.deepEqual([refused.status, refused.code], [403, 'HTTP_403']);
  assert.deepEqual(
    events.map(({ id, key }) => [id, key]),
    [
      ['6.6', 'é\u{1f600}'],
      ['8.8', 'two'],
    ],
  );
  assert.deepEqual(seen, [undefined, '6.6', '6.6', '6.6']);
});

test('the first connection of a stream fails as it is refused, and every connection ends with its signal', async () => {
  await using busy = await scripted((response) =>
    response.writeHead(503, { 'retry-after': '7' }).end('{"code":"TOO_MANY_STREAMS"}'),
  );
  const { follow } = client(busy.url).relation('a');
  const refused = await refusal(() => follow().next());
  assert.deepEqual([refused.code, refused.retryAfter], ['TOO_MANY_STREAMS', 7]);
  const controller = new AbortController();
  await using silent = await scripted((response) => response.writeHead(200).write('id: 1.1\n\n'));
  const next = client(silent.url)
    .relation('a')
    .follow({ signal: controller.signal, onOpen: () => controller.abort() })
    .next();
  assert.deepEqual(await next, { value: undefined, done: true });
  let url = '';
  {
    await using gone = await scripted();
    url = gone.url;
  }
  await assert.rejects(client(url).relation('a').follow().next(), TypeError);
});
