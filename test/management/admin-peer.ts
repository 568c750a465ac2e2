import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** What a Spring Boot Admin server knows of an application. */
export interface Registration {
  readonly name: string;
  readonly managementUrl: string;
  readonly healthUrl: string;
  readonly serviceUrl: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The side of a Spring Boot Admin server that applications register with. */
export interface AdminPeer extends AsyncDisposable {
  readonly url: string;
  /** By id, as registered now. */
  readonly instances: Map<string, Registration>;
  /** Every request so far, such as `POST /instances`. */
  readonly requests: readonly string[];
  /** The Authorization header of the last request. */
  readonly authorization: string | undefined;
  /** Answers instead of the server while it is set. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Listens again on the same port after `close`, knowing nobody. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

/** Starts one, by the rules of the server's own interface: the same health URL gets the same id. */
export async function startAdminPeer(): Promise<AdminPeer> {
  const instances = new Map<string, Registration>();
  const requests: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '' } = request;
    peer.authorization = request.headers.authorization;
    requests.push(`${method} ${url}`);
    if (peer.instead !== undefined) return peer.instead(request, response);
    if (method === 'POST' && url === '/instances' && request.headers['content-type'] === 'application/json') {
      const registration = (await json(request)) as Registration;
      if (!registration.name || !URL.canParse(registration.healthUrl)) return response.writeHead(400).end();
      const id = createHash('sha1').update(registration.healthUrl).digest('hex').slice(0, 12);
      instances.set(id, registration);
      const headers = { 'content-type': 'application/json', location: `/instances/${id}` };
      return response.writeHead(201, headers).end(JSON.stringify({ id }));
    }
    if (method === 'DELETE' && url.startsWith('/instances/')) {
      const known = instances.delete(url.slice('/instances/'.length));
      return response.writeHead(known ? 204 : 404).end();
    }
    return response.writeHead(405).end();
  };

  let server = createServer(answer);
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const peer = {
    url: `http://127.0.0.1:${port}`,
    instances,
    requests,
    authorization: undefined as string | undefined,
    instead: undefined as AdminPeer['instead'],
    async reopen() {
      instances.clear();
      server = createServer(answer);
      await listen(port);
    },
    async close() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
    [Symbol.asyncDispose]: () => peer.close(),
  };
  return peer;
}
