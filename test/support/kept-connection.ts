import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One connection to a door for all that is asked, kept between requests. */
export interface KeptConnection extends Disposable {
  ask(path: string, asked?: Asked): Promise<Reply>;
}

/** Opens it and sends its first request, which is never the fast path's. */
export async function keepConnection(url: string): Promise<KeptConnection> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  async function ask(path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Reply> {
    const sent = request(url + path, { agent, method, headers });
    sent.end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: reply.statusCode, headers: reply.headers, body: await text(reply) };
  }
  await ask('/');
  return { ask, [Symbol.dispose]: () => agent.destroy() };
}
