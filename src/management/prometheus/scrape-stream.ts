import { Readable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';

/**
 * A stream of chunks, each made when the reader wants it and in a tick of its own: other requests wait for one chunk at
 * most.
 */
export function scrapeStream(chunks: Iterable<string>): Readable {
  return Readable.from(paced(chunks), { objectMode: false });
}

async function* paced(chunks: Iterable<string>) {
  for (const chunk of chunks) {
    yield Buffer.from(chunk);
    await nextTick();
  }
}
