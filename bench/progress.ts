export interface Progress {
  say(text: string): void;
  end(): void;
}

/** Shows progress: on a terminal in one line that is overwritten, elsewhere one line per step. */
export function createProgress(prefix: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  return {
    say(text) {
      const line = `${prefix}: ${text}`;
      stream.write(stream.isTTY ? `\r\x1b[2K${line.slice(0, (stream.columns ?? 80) - 1)}` : `${line}\n`);
    },
    end() {
      if (stream.isTTY) stream.write('\r\x1b[2K');
    },
  };
}
