import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { scrapeStream } from './scrape-stream.ts';

/** Chunks of which we know how many were asked for, and whether they were given up. */
function source(count: number, size: number) {
  const seen = { made: 0, ended: false };
  function* chunks(): Generator<string, void> {
    try {
      for (; seen.made < count; ) {
        seen.made++;
        yield 'x'.repeat(size);
      }
    } finally {
      seen.ended = true;
    }
  }
  return { seen, chunks: chunks() };
}

const turn = () => new Promise(setImmediate);

test('everything arrives, in order, in bytes', async () => {
  const stream = scrapeStream(['ä', 'b\n', '\u{1f600}'].values());
  assert.equal(await text(stream), 'äb\n\u{1f600}');
});

test('the event loop turns between two chunks', async () => {
  const { seen, chunks } = source(50, 10);
  const stream = scrapeStream(chunks);
  const done = text(stream);
  let before = 0;
  while (!seen.ended) {
    await turn();
    assert.ok(seen.made - before <= 1, `${seen.made - before} chunks in one turn`);
    before = seen.made;
  }
  assert.equal((await done).length, 500);
});

test('a reader that does not read stops the work', async () => {
  const { seen, chunks } = source(1_000, 50_000);
  const stalled = new PassThrough();
  const done = pipeline(scrapeStream(chunks), stalled);
  for (let i = 0; i < 50; i++) await turn();
  assert.ok(seen.made < 20, `${seen.made} chunks for nobody`);
  stalled.resume();
  await done;
  assert.equal(seen.made, 1_000);
});

test('a reader that goes away ends the work', async () => {
  const { seen, chunks } = source(1_000, 50_000);
  const stream = scrapeStream(chunks);
  stream.once('data', () => stream.destroy());
  await once(stream, 'close');
  const { made } = seen;
  for (let i = 0; i < 5; i++) await turn();
  assert.equal(seen.made, made);
  assert.ok(seen.ended);
});

test('a meter that fails ends the reply, not the process', async () => {
  function* failing(): Generator<string, void> {
    yield 'a';
    throw new Error('broken meter');
  }
  await assert.rejects(text(scrapeStream(failing())), /broken meter/);
});
