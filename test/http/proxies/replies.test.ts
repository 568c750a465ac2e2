import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { proofCount, rounds } from '../../support/proof-settings.ts';
import { type Random, seededRandom } from '../../support/random.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { foreignIds } from '../fuzz/compare.ts';
import { conversation } from '../fuzz/conversation.ts';
import { readServiceCorpus } from '../fuzz/corpus.ts';
import { play } from '../fuzz/play.ts';
import { proxies } from './proxy.ts';

const SEED = Number(process.env.PORTICO_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const CLIENTS = 20;
const REQUESTS = rounds(100);
const USERS = 50;
/** Clients that say what they like. */
const ODD = Math.ceil(proofCount('PORTICO_FUZZ', 2_500) / 15);
const ODD_AT_ONCE = 16;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly reply: string;
}

let ids = 0;

/** A request that only it has this reply to. */
function unique(random: Random): Asked {
  const id = `u${++ids}`;
  const graphql = (query: string, data: object): Asked => ({
    method: 'POST',
    path: '/graphql',
    body: JSON.stringify({ query }),
    reply: JSON.stringify({ data }),
  });
  return random.pick([
    () => graphql(`{${id}:hello}`, { [id]: 'Hello from Portico!' }),
    // Too large for one piece.
    () => graphql(`{${id}:hello ${' '.repeat(50_000)}}`, { [id]: 'Hello from Portico!' }),
    () => {
      const user = 1 + random.below(USERS);
      const data = { id: user, name: `name ${user}`, email: 'a@x.y' };
      return {
        method: 'GET',
        path: `/users/${user}`,
        reply: JSON.stringify({ status: 'success', data }),
      };
    },
    () => ({
      method: 'POST',
      path: '/graphql',
      body: JSON.stringify({ query: `mutation{createUser(name:"${id}",email:"a@x.y"){name}}` }),
      reply: JSON.stringify({ data: { createUser: { name: id } } }),
    }),
  ])();
}

async function ask(url: string, agent: Agent, { method, path, body }: Asked): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const sent = request(url + path, { agent, method, headers });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  return text(reply);
}

/** Counts the connections that the doors accept. */
function countConnections({ current }: TestService): () => number {
  let count = 0;
  for (const { server } of Object.values(current.doors)) server.on('connection', () => count++);
  return () => count;
}

for (const { name, missing, start } of proxies) {
  test(`through ${name}, whose connections many clients share, each has its own replies, whatever others send`, {
    skip: missing,
  }, async (t) => {
    t.diagnostic(`PORTICO_FUZZ_SEED=${SEED}`);
    await using service = await startTestService({ env: { TRUST_PROXY: '127.0.0.1' } });
    await service.listen();
    await using proxy = await start([service.urls]);
    for (let i = 1; i <= USERS; i++) {
      const body = JSON.stringify({ name: `name ${i}`, email: 'a@x.y' });
      await fetch(`${proxy.url}/users`, { method: 'POST', body });
    }
    const connections = countConnections(service);

    const client = async (_: unknown, number: number) => {
      const random = seededRandom(SEED + number);
      using agent = Object.assign(new Agent({ keepAlive: true }), {
        [Symbol.dispose]: () => agent.destroy(),
      });
      for (let i = 0; i < REQUESTS; i++) {
        const asked = unique(random);
        assert.equal(await ask(proxy.url, agent, asked), asked.reply);
      }
    };
    const door = { port: Number(new URL(proxy.url).port), hasAccepted: () => true, silence: 5 };
    const corpus = (['graphql', 'rest', 'webhook'] as const).map(readServiceCorpus);
    let next = 0;
    const oddClient = async () => {
      while (next < ODD) {
        const said = conversation(corpus[next % 3] ?? [], SEED, next++);
        const { text } = await play(said, door);
        assert.equal(foreignIds(said, text), false, text);
        // What the usual clients are answered.
        assert.doesNotMatch(text, /"u\d+"/);
      }
    };
    await Promise.all([
      ...Array.from({ length: CLIENTS }, client),
      ...Array.from({ length: ODD_AT_ONCE }, oddClient),
    ]);
    t.diagnostic(`${CLIENTS * REQUESTS} requests, ${ODD} odd conversations, ${connections()} connections`);
    assert.ok(connections() < CLIENTS * REQUESTS);
  });
}
