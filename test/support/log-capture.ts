import { Writable } from 'node:stream';

/** A stream for log lines that keeps every line as the object it holds. */
export interface LogCapture {
  readonly stream: Writable;
  readonly entries: readonly Record<string, unknown>[];
  /** Lines that are not one JSON object each; a sound log has none. */
  readonly broken: readonly string[];
}

/** Collects the lines written to `stream`, whole or in pieces. */
export function captureLog(): LogCapture {
  const entries: Record<string, unknown>[] = [];
  const broken: string[] = [];
  let rest = '';
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) keep(line);
      done();
    },
  });
  function keep(line: string): void {
    try {
      const entry: unknown = JSON.parse(line);
      if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
        throw new TypeError('no object');
      entries.push(entry as Record<string, unknown>);
    } catch {
      broken.push(line);
    }
  }
  return { stream, entries, broken };
}
