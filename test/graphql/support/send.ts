import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';

export interface Sent {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** In pieces, each on its way before the next one is written. */
  readonly body?: readonly (string | Uint8Array)[];
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends exactly these headers and no others but Host and those of the framing, unlike fetch. */
export function send(url: string, { method = 'GET', headers = {}, body = [] }: Sent = {}): Promise<Received> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.setNoDelay(true);
    void (async () => {
      for (const piece of body) {
        sent.write(piece);
        await turn();
      }
      sent.end();
    })();
  });
}
