import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { build } from 'esbuild';
import { startTestService } from '../support/service.ts';
import { launchBrowser, root, skip } from './support.ts';

/** Where the pages are: to a browser other sites than 127.0.0.1, where the doors are. */
const PAGES = ['127.0.0.2', '127.0.0.3'];

/** What the page runs: fetch against REST, Apollo Client against GraphQL, each outcome as text. */
const SCRIPT = `
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
const outcome = (work) => work().then(String, (error) => 'failed: ' + error.name);
window.ask = ({ rest, graphql, token }) => {
  const headers = { authorization: 'Bearer ' + token };
  const client = new ApolloClient({ cache: new InMemoryCache(), link: new HttpLink({ uri: graphql, headers }) });
  const json = { ...headers, 'content-type': 'application/json' };
  return Promise.all([
    outcome(async () => {
      const reply = await fetch(rest + '/users', { method: 'POST', headers: json, body: '{"name":"A","email":"a@b"}' });
      return [reply.status, (await reply.json()).status, reply.headers.get('location'), reply.headers.get('x-error-code')];
    }),
    outcome(async () => (await client.mutate({ mutation: gql('mutation { createUser(name: "A", email: "a@b") { name } }') })).data.createUser.name),
    outcome(async () => (await client.query({ query: gql('{ users { id } }') })).data.users.length > 0),
    outcome(() => new Promise((done, failed) => {
      const socket = new WebSocket(graphql.replace('http', 'ws'), 'graphql-transport-ws');
      socket.onopen = () => socket.send(JSON.stringify({ type: 'connection_init', payload: headers }));
      socket.onmessage = ({ data }) => done(JSON.parse(data).type);
      socket.onclose = ({ code }) => done(code);
    })),
  ]);
};`;

test('a page of another origin uses the doors where it is let in, and nowhere else', { skip }, async () => {
  const bundle = await build({
    stdin: { contents: SCRIPT, resolveDir: root },
    bundle: true,
    write: false,
    format: 'iife',
    define: { 'globalThis.__DEV__': 'false', 'process.env.NODE_ENV': '"production"' },
  });
  const script = bundle.outputFiles[0]?.text ?? '';
  await using stack = new AsyncDisposableStack();
  const [allowed, stranger] = await Promise.all(PAGES.map((host) => servePage(host, script, stack)));
  assert.ok(allowed !== undefined && stranger !== undefined);
  const token = 'page-token-0123456789';
  const service = stack.use(
    await startTestService({
      module: `export default ${JSON.stringify({
        api: { required: 'all', tokens: { page: { secret: token, scopes: ['users:read', 'users:write'] } } },
      })};`,
      env: { INTERFACES: 'rest,graphql', REST_CORS_ORIGINS: allowed, GRAPHQL_CORS_ORIGINS: allowed },
    }),
  );
  await service.listen();
  const browser = stack.use(await launchBrowser(['127.0.0.1', ...PAGES]));
  const context = stack.use(await browser.newContext());
  const ask = async (origin: string, given: string): Promise<unknown> => {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`${origin}/`);
    const { rest, graphql } = service.urls;
    const options = { rest, graphql: `${graphql}/graphql`, token: given };
    return page.evaluate(`ask(${JSON.stringify(options)})`);
  };

  assert.deepEqual(await ask(allowed, token), ['200,success,/users/1,', 'A', 'true', 'connection_ack']);
  // Refusals can be read too.
  const [refused] = (await ask(allowed, 'wrong')) as string[];
  assert.equal(refused, '401,error,,UNAUTHORIZED');
  assert.deepEqual(await ask(stranger, token), [
    'failed: TypeError',
    'failed: TypeError',
    'failed: TypeError',
    '1006',
  ]);
});

/** Serves the page at an address of this machine until the stack is disposed of; resolves to its origin. */
async function servePage(host: string, script: string, stack: AsyncDisposableStack): Promise<string> {
  const pages = createServer((request, reply) => {
    const isScript = request.url === '/page.js';
    reply.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    reply.end(isScript ? script : '<!doctype html><title>page</title><script src="/page.js"></script>');
  });
  pages.listen(0, host);
  await once(pages, 'listening');
  stack.defer(() => {
    pages.closeAllConnections();
    pages.close();
  });
  return `http://${host}:${(pages.address() as AddressInfo).port}`;
}
