import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A request that a receiver got. */
export interface Got {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type Answer = (response: ServerResponse, attempt: number) => void;

/** A receiver that answers each path in its own way, and 204 where nothing is said. */
export async function startReceiver(answers: Readonly<Record<string, Answer>> = {}) {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    got.push({ path, headers: request.headers, body: await buffer(request) });
    const answer = answers[path];
    if (answer === undefined) response.writeHead(204).end();
    else answer(response, got.filter((each) => each.path === path).length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got: got as readonly Got[],
    at: (path: string) => got.filter((each) => each.path === path),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** With which these addresses sign. */
export const FORWARD_SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

/** A configuration with forward addresses in our network; `at` stands for the URL of the receiver. */
export const forwards = (at: string, entries: string) => `
const to = (path, rules = {}) =>
  ({ url: '${at}' + path, allowPrivate: true, secrets: '${FORWARD_SECRET}', ...rules });
export default { webhook: { forward: { ${entries} } } };
`;
