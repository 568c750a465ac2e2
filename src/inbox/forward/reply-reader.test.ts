import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReplyError, ReplyReader } from './reply-reader.ts';

/** Reads a reply whose bytes come in parts, and then the end of the connection if it is not complete. */
function read(text: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text, 'latin1');
  const body: Buffer[] = [];
  const reader = new ReplyReader((part) => void body.push(Buffer.from(part)));
  const ends = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].toSorted((a, b) => a - b);
  let begin = 0;
  for (const end of ends) {
    // What follows a complete reply belongs to no request.
    if (end > begin && !reader.isComplete) reader.read(bytes.subarray(begin, end));
    begin = end;
  }
  const isSelfContained = reader.isComplete;
  const { keptFor } = reader;
  const isComplete = reader.isComplete || reader.end();
  return {
    ...reader.head,
    body: Buffer.concat(body).toString('latin1'),
    isSelfContained,
    isComplete,
    keptFor,
  };
}

const kept = { isSelfContained: true, isComplete: true, keptFor: Number.POSITIVE_INFINITY };
const closes = { isSelfContained: true, isComplete: true, keptFor: 0 };
const untilClose = { isSelfContained: false, isComplete: true, keptFor: 0 };
const plain = { status: 200, retryAfter: undefined };

const replies: readonly (readonly [what: string, text: string, found: object])[] = [
  ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', { ...kept, ...plain, status: 204, body: '' }],
  ['no reason', 'HTTP/1.1 204\r\n\r\n', { ...kept, ...plain, status: 204, body: '' }],
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', { ...kept, ...plain, body: 'hello' }],
  ['a length of 0', 'HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n', { ...kept, ...plain, body: '' }],
  [
    'chunks, one with an extension, and trailers',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=1\r\n, receiver\r\n0\r\nx: 1\r\n\r\n',
    { ...kept, ...plain, body: 'hello, receiver' },
  ],
  [
    'the end of the connection',
    'HTTP/1.1 200 OK\r\nx: 1\r\n\r\nhello',
    { ...untilClose, ...plain, body: 'hello' },
  ],
  [
    'interim replies',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok',
    { ...kept, ...plain, status: 202, body: 'ok' },
  ],
  [
    'Retry-After and the time that a connection is kept',
    'HTTP/1.1 503 Busy\r\nRetry-After:  7 \r\nKeep-Alive: timeout=5, max=100\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n',
    { ...kept, status: 503, retryAfter: '7', body: '', keptFor: 5_000 },
  ],
  [
    'a connection that closes',
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx',
    { ...closes, ...plain, body: 'x' },
  ],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', { ...closes, ...plain, body: 'x' }],
  [
    'two lengths',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx',
    { ...closes, ...plain, body: 'x' },
  ],
  [
    'a length beside chunks',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    { ...untilClose, ...plain, body: '0\r\n\r\n' },
  ],
  [
    'another coding',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nabc',
    { ...untilClose, ...plain, body: 'abc' },
  ],
  [
    'a length that is none',
    'HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello',
    { ...untilClose, ...plain, body: 'hello' },
  ],
  [
    'a space before the colon',
    'HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello',
    { ...untilClose, ...plain, body: 'hello' },
  ],
  ['an upgrade', 'HTTP/1.1 101 Switching\r\n\r\nabc', { ...untilClose, ...plain, status: 101, body: 'abc' }],
];

describe('replies', () => {
  for (const [what, text, found] of replies) {
    test(`${what}, however the bytes come`, () => {
      fc.assert(
        fc.property(fc.array(fc.nat(), { maxLength: 10 }), (cuts) =>
          assert.deepEqual(read(text, cuts), found),
        ),
      );
      for (let cut = 1; cut < text.length; cut++) assert.deepEqual(read(text, [cut]), found);
    });
  }

  test('bytes after a reply end the connection', () => {
    for (const more of ['x', '\r\n', 'HTTP/1.1 200 OK\r\n\r\n'])
      assert.deepEqual(read(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello${more}`), {
        ...closes,
        ...plain,
        body: 'hello',
      });
  });

  test('a reply that breaks off is not complete', () => {
    for (const text of [
      'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n',
    ])
      assert.equal(read(text).isComplete, false);
  });

  test('what is not HTTP, or too long, is refused', () => {
    for (const text of [
      'SSH-2.0-OpenSSH_9\r\n',
      '\0\0\0\u0012\u0004\0\0\0\0\0\0',
      'HTTP/2.0 200 OK\r\n\r\n',
      'HTTP/1.1 20 OK\r\n\r\n',
      'HTTP/1.1 2000 OK\r\n\r\n',
      `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(17_000)}`,
      `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(17_000)}\r\n\r\n`,
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;${'a'.repeat(5_000)}`,
    ])
      assert.throws(() => read(text), ReplyError, text.slice(0, 60));
  });

  test('any bytes are a reply, are refused, or wait for more', () => {
    const piece = fc.constantFrom(
      'HTTP/1.1 200 OK',
      '\r\n',
      ':',
      'content-length',
      ' 5',
      'transfer-encoding',
      'chunked',
      '5',
      'a',
      '\0',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        (pieces, cuts) => {
          try {
            read(pieces.join(''), cuts);
          } catch (error) {
            assert.ok(error instanceof ReplyError, String(error));
          }
        },
      ),
    );
  });
});
