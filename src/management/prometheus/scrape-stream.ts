import { Readable } from 'node:stream';

/**
 * A stream of chunks, each made when the reader wants it and in a tick of its own: other requests wait for one chunk at
 * most.
 */
export function scrapeStream(chunks: Iterator<string, void>): Readable {
  return new Readable({
    read() {
      setImmediate(() => {
        try {
          const { done, value } = chunks.next();
          this.push(done === true ? null : Buffer.from(value));
        } catch (error) {
          this.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
    },
    destroy(error, done) {
      chunks.return?.();
      done(error);
    },
  });
}
