import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends one request once, never again by itself; rejects when the connection ends before the whole reply is here. */
export function send(
  agent: Agent,
  method: string,
  url: string,
  body?: string,
  headers: OutgoingHttpHeaders = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      reply.on('error', reject);
      reply.on('end', () => {
        if (reply.complete) resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text });
        else reject(new Error('the reply was cut short'));
      });
      reply.on('close', () => reject(new Error('the reply was cut short')));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
