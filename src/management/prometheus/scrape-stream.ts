import { Readable } from 'node:stream';

/**
 * A stream of chunks that makes each one only when the reader wants it, and lets the event loop turn before
 * each: however much there is, other requests wait no longer than for one chunk.
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
