import { connect } from 'node:net';
import { Silence } from './silence.ts';

/** What came back over a raw connection before it ended. */
export interface RawReply {
  /** Every byte, as latin1 text. */
  readonly text: string;
  /** The status of the first reply; undefined when the peer closed without one. */
  readonly status: number | undefined;
  /** How many replies the bytes hold, counted by their status lines. */
  readonly replies: number;
}

/**
 * Writes `parts` to `url`'s host and port exactly as they are and reads until the peer closes the connection,
 * or until it has been silent for `silence` milliseconds after the first byte (default 300), or for `within`
 * milliseconds altogether (default 100,000). A reset counts as a close: what was read until then is the reply.
 */
export function rawHttp(
  url: string,
  parts: readonly (string | Uint8Array)[],
  { silence = 300, within = 100_000 }: { silence?: number; within?: number } = {},
): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    let pause: Silence | undefined;
    const limit = setTimeout(() => socket.destroy(), within);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      pause ??= new Silence(silence, () => socket.destroy());
      pause.broken();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      pause?.stop();
      clearTimeout(limit);
      resolve(read(Buffer.concat(chunks).toString('latin1')));
    });
    for (const part of parts) socket.write(part);
  });
}

function read(text: string): RawReply {
  const statuses = [...text.matchAll(/^HTTP\/1\.[01] (\d{3}) /gm)];
  const first = statuses[0]?.[1];
  return { text, status: first === undefined ? undefined : Number(first), replies: statuses.length };
}
