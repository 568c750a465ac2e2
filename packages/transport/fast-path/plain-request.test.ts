import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { oddRequest } from '../../../test/support/odd-requests.ts';
import { LIMITS } from '../server/limits.ts';
import { PlainRequestReader, readPlainRequest } from './fast-connection.ts';

const post = (lines: string, body = '') =>
  Buffer.from(`POST /a HTTP/1.1\r\nHost: x\r\n${lines}\r\n${body}`, 'latin1');

test('a plain request is read: its method, target, fields and where its body stands', () => {
  const chunk = Buffer.from(
    'POST /a/b?c=%20 HTTP/1.1\r\nhOsT: x\r\nContent-Length:5\r\nX-A: \t b \xa0 \t\r\nX-Empty:\r\n\r\n12345',
    'latin1',
  );
  const request = readPlainRequest(chunk);
  assert.deepEqual(request, {
    method: 'POST',
    url: '/a/b?c=%20',
    headers: { host: 'x', 'content-length': '5', 'x-a': 'b \xa0', 'x-empty': '' },
    contentType: null,
    head: chunk.toString('latin1', 0, chunk.length - 5),
    length: chunk.length,
  });
});

test('the content type stands apart from the other fields', () => {
  const request = readPlainRequest(post('Content-Type:  text/x \r\nA: b\r\n'));
  assert.equal(request?.contentType, 'text/x');
  assert.deepEqual(request?.headers, { host: 'x', 'content-type': undefined, a: 'b' });
});

test('of a body that is not whole the length is known', () => {
  const request = readPlainRequest(post('Content-Length: 100\r\n', '12345'));
  assert.equal((request?.length ?? 0) - (request?.head.length ?? 0), 100);
});

const others: Readonly<Record<string, Buffer>> = {
  'a head without end': post('').subarray(0, -1),
  'bytes behind the request': post('Content-Length: 4\r\n', '12345'),
  'a chunked body that is still to come': post('Transfer-Encoding: chunked\r\n'),
  'a length that is no number': post('Content-Length: +1\r\n', '1'),
  'two lengths': post('Content-Length: 1\r\nContent-Length: 1\r\n', '1'),
  'two hosts': post('Host: x\r\n'),
  'no host': Buffer.from('GET / HTTP/1.1\r\nA: b\r\n\r\n'),
  'another version': Buffer.from('GET / HTTP/1.0\r\nHost: x\r\n\r\n'),
  'another form of target': Buffer.from('GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n'),
  'another method': Buffer.from('CONNECT /x HTTP/1.1\r\nHost: x\r\n\r\n'),
  'a line that goes on in the next': post('A: b\r\n c\r\n'),
  'a blank before the colon': post('A : b\r\n'),
  'a line feed alone': post('A: b\nC: d\r\n'),
  'a control character': post('A: \x01\r\n'),
  'the end of the connection': post('Connection: close\r\n'),
  'the end of the connection by its old name': post('Proxy-Connection: close\r\n'),
  'another protocol': post('Upgrade: websocket\r\n'),
  'a question before the body': post('Expect: 100-continue\r\nContent-Length: 1\r\n'),
  'a name that every object has': post('Constructor: x\r\n'),
  'a field of which Node makes a list': post('Set-Cookie: a\r\n'),
  'too many fields': post(
    'A: b\r\n'.repeat(1).concat(...Array.from({ length: 98 }, (_, i) => `A${i}: b\r\n`)),
  ),
  'a long head': post(`A: ${'b'.repeat(9_000)}\r\n`),
};
for (const [what, chunk] of Object.entries(others)) {
  test(`${what} is not plain`, () => assert.equal(readPlainRequest(chunk), undefined));
}

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Node's own reading of a connection: its requests, until it is closed. */
async function openNode() {
  let seen: Seen[] = [];
  const server = createServer({ maxHeaderSize: LIMITS.maxHeaderBytes, requireHostHeader: false });
  server.maxHeadersCount = LIMITS.maxHeaders;
  server.on('request', ({ method, url, headers }, response) => {
    const chunks: Buffer[] = [];
    response.req.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.req.on('end', () => {
      seen.push({ method, url, headers: { ...headers }, body: Buffer.concat(chunks).toString('latin1') });
      response.end();
    });
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    async read(bytes: Uint8Array): Promise<readonly Seen[]> {
      seen = [];
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.resume().end(bytes);
      await once(socket, 'close');
      return seen;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const NEXT = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

const requests = oddRequest({
  methods: ['POST', 'GET', 'PUT', 'M-SEARCH', 'PRI', 'post'],
  targets: ['/a', '/a?b=%20', '/a#b', '*', '//x', '/a b', '/\xe4', "/~!$&'()*+,;=:@"],
  headers: [
    'A: b',
    'Content-Type: text/x',
    'a:',
    'A:\t b\xa0 ',
    'A-B_c: \xe4"',
    'Cookie: a; b',
    '__proto__: x',
    'Keep-Alive: 1',
    ' a: b',
    'A: b\n',
  ],
  usual: ['Accept: */*'],
  bodies: ['12345', '', 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n', Uint8Array.of(0, 255)],
});

/** A byte put in, left out or put in the place of another. */
const edits = fc.array(
  fc.record({
    at: fc.nat(),
    left: fc.constantFrom(0, 1),
    put: fc.oneof(
      fc.constant(''),
      fc.constantFrom('\r', '\n', '\r\n', ' ', '\t', ':', '\0', '\x7f', ',', '0', '\xa0'),
      fc.string({ maxLength: 2 }),
    ),
  }),
  { maxLength: 2 },
);

test("what is plain means the same to Node's parser, which sees nothing else in its bytes", async () => {
  await using node = await openNode();
  let plain = 0;
  await fc.assert(
    fc.asyncProperty(requests, edits, fc.boolean(), async ({ head, body }, changes, isWhole) => {
      let text = isWhole ? head + Buffer.from(body).toString('latin1') : head;
      for (const { at, left, put } of changes) {
        const place = at % (head.length + 1);
        text = text.slice(0, place) + put + text.slice(place + left);
      }
      const chunk = Buffer.from(text, 'latin1');
      const request = readPlainRequest(chunk);
      if (request === undefined) return;
      plain++;
      const { method, url, headers, contentType, length } = request;
      const label = contentType === null ? {} : { 'content-type': contentType };
      assert.ok(length >= chunk.length);
      const whole = Buffer.concat([chunk, Buffer.alloc(length - chunk.length, 'x')]);
      const [first, next, ...more] = await node.read(Buffer.concat([whole, Buffer.from(NEXT)]));
      const sent = {
        method,
        url,
        headers: { ...headers, ...label },
        body: whole.toString('latin1', request.head.length),
      };
      assert.deepEqual(first, sent);
      assert.equal(next?.url, '/next');
      assert.deepEqual(more, []);
    }),
    { numRuns: 3_000 },
  );
  assert.ok(plain > 500, `${plain} of 3,000 were plain`);
});

test('a connection reads each request like the first one, whatever came before', () => {
  const heads = fc.constantFrom(
    'GET /a HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /b HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /a HTTP/1.1\r\nHost: x\r\nA: \xe4\r\n\r\n',
    'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n',
    'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n',
    'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  const bodies = fc.constantFrom('', '1234', '\xe4234', '12345', '123456', '\r\n\r\n');
  const chunks = fc.record({ head: heads, body: bodies, cut: fc.constantFrom(0, 0, 1, 3, 9) });
  let repeated = 0;
  fc.assert(
    fc.property(fc.array(chunks, { maxLength: 12 }), (sequence) => {
      const reader = new PlainRequestReader();
      let before: unknown;
      for (const { head, body, cut } of sequence) {
        const text = head + body;
        const chunk = Buffer.from(text.slice(0, text.length - cut), 'latin1');
        const request = reader.read(chunk);
        assert.deepEqual(request, readPlainRequest(chunk));
        if (request !== undefined && request === before) repeated++;
        before = request;
      }
    }),
    { numRuns: 3_000 },
  );
  assert.ok(repeated > 100, `${repeated} heads were read once`);
});

test('a long head is not remembered, so that many connections hold little', () => {
  const reader = new PlainRequestReader();
  const head = (length: number) => post(`A: ${'b'.repeat(length)}\r\n`);
  assert.equal(reader.read(head(900)), reader.read(head(900)));
  assert.notEqual(reader.read(head(1_024)), reader.read(head(1_024)));
});
