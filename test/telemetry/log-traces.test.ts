import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleWith } from '../access/support/tokens.ts';
import { connectSocket, openSocket } from '../graphql/support/socket-client.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SENDER = '00f067aa0ba902b7';
const headers = { traceparent: `00-${TRACE}-${SENDER}-01` };

const MODULE = moduleWith().replace(
  'export default {',
  `const fail = () => { throw new Error('broken'); };
  export default { graphql: {
    typeDefs: 'extend type Query { broken: String } extend type Subscription { broken: String }',
    context: (request, { connectionParams }) => connectionParams?.broken ? fail() : {},
    resolvers: {
      Query: { broken: fail },
      Subscription: { broken: { async *subscribe() { yield { broken: 'not yet' }; fail(); } } },
    },
  },`,
);

test('log entries about a WebSocket and an event stream have the trace of the request that opened it', async () => {
  await using service = await startTestService({
    module: MODULE,
    env: { INTERFACES: 'graphql', API_REQUIRED: 'write', LOG_LEVEL: 'debug', LOG_REQUESTS: 'true' },
  });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  const logged = (msg: string) => service.log.entries.filter((entry) => entry.msg === msg);

  const client = await connectSocket(url, { headers });
  client.subscribe('query', '{ broken }');
  client.subscribe('subscription', 'subscription { broken }');
  await waitFor('the failed resolver', () => logged('resolver failed').length === 1);
  await waitFor('the failed source', () => logged('subscription failed').length === 1);
  client.socket.send(Buffer.from([0x22, 0xff]), { binary: false });
  assert.equal((await client.closed).code, 1007);

  const stranger = await openSocket(url, { headers });
  stranger.send({ type: 'connection_init', payload: { Authorization: 'Bearer wrong' } });
  assert.equal((await stranger.closed).code, 4403);
  await waitFor('both refusals', () => logged('WebSocket refused').length === 2);

  const broken = await openSocket(url, { headers });
  broken.send({ type: 'connection_init', payload: { broken: true } });
  broken.subscribe('query', '{ broken }');
  await waitFor('the failed operation', () => logged('operation failed').length === 1);
  broken.socket.terminate();

  const stream = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: '{"query":"subscription { broken }"}',
  });
  await assert.rejects(stream.text());
  await waitFor('the entry', () => logged('event stream cut').length === 1);

  const about = service.log.entries.filter(({ reqId }) => reqId !== undefined);
  assert.deepEqual(
    about.filter(({ traceId, spanId }) => traceId !== TRACE || spanId !== SENDER),
    [],
  );
});
