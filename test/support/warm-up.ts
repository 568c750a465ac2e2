import type { Socket } from 'node:net';

/** Where the first request of a connection goes; no door has it. */
export const WARM_UP_PATH = '/warm-up';

/**
 * Sends the first request of a connection and resolves once its reply is there, or the connection is gone. The fast
 * path takes none before it.
 */
export function warmUp(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    let text = '';
    const read = (piece: Buffer) => {
      text += piece.toString('latin1');
      const [head = '', body] = text.split('\r\n\r\n', 2);
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (body !== undefined && length !== undefined && body.length >= Number(length)) done();
    };
    const done = () => {
      socket.off('data', read).off('close', done);
      resolve();
    };
    socket.on('data', read).on('close', done);
    socket.write(`GET ${WARM_UP_PATH} HTTP/1.1\r\nHost: x\r\n\r\n`);
  });
}
