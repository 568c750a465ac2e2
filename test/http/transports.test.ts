import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Door } from '../../src/config/options/door.ts';
import {
  almostPlain,
  type Cut,
  type OddRequest,
  type OddRequests,
  oddRequest,
  pieces,
} from '../support/odd-requests.ts';
import { startTransportTwins, type TransportTwins } from '../support/transport-twins.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  creates,
  deletes,
  graphql,
  JSON_LABEL,
  levels,
  mutations,
  probes,
  rest,
  signed,
  updates,
  webhook,
} from './door-requests.ts';

const RUNS = 300;
const env = {
  MANAGEMENT_INCLUDE: 'health,loggers,prometheus',
  GRAPHQL_MAX_USERS: '5',
  GRAPHQL_MAX_BODY_BYTES: '400',
  WEBHOOK_MAX_BODY_BYTES: '300',
  WEBHOOK_MAX_BYTES_IN_FLIGHT: '400',
  WEBHOOK_SECRET: 'sesame',
};
const sources = `export default { webhook: { sources: { shop: { scheme: 'token', header: 'x-shop', secrets: ['sesame'] } } } };`;

async function agree(
  twins: TransportTwins,
  door: Door,
  requests: readonly OddRequest[],
  cut: Cut,
): Promise<void> {
  const { fast, fastify } = await twins.ask(door, pieces(requests, cut));
  assert.equal(fast, fastify);
}

const samples: readonly (readonly [Door, OddRequests, count: number])[] = [
  ['rest', rest, 3],
  ['graphql', graphql, 3],
  ['graphql', mutations, 1],
  ['webhook', webhook, 3],
];

/** Things that make a difference only together. */
const pairs: readonly (readonly [Door, string, body: string])[] = [
  ['graphql', 'Accept: application/json, text/event-stream', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"{helo}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: text/plain', '{"query":'],
  // It would fit the budget once, not twice.
  ['webhook', 'X-Webhook-Token: sesame', `{"event":"x"${' '.repeat(250 - 12)}`],
];

/** How many requests were counted, by door, route, method and status. */
async function counts(url: string | undefined): Promise<string> {
  const text = await (await fetch(`${url}/actuator/prometheus`)).text();
  return text
    .split('\n')
    .filter((line) => /^(http_server_requests|graphql_\w+?)_(seconds_count|total)\{/.test(line))
    .filter((line) => !line.includes('door="management"'))
    .sort()
    .join('\n');
}

async function sameCounts({ fast, fastify }: TransportTwins): Promise<string> {
  const both = () => Promise.all([counts(fast.urls.management), counts(fastify.urls.management)]);
  // A reply is counted a moment after the client has it.
  await waitFor('the counts to agree', async () => {
    const [byFast, byFastify] = await both();
    return byFast === byFastify;
  }).catch(() => {});
  const [byFast, byFastify] = await both();
  assert.equal(byFast, byFastify);
  return byFast;
}

/** Two users of REST; the last of those whose ids are asked for is unknown. */
async function addUsers(twins: TransportTwins): Promise<void> {
  const body = '{"name":"N","email":"n@x.y"}';
  const head = `POST /users HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  for (let i = 0; i < 2; i++) await twins.ask('rest', [head + body]);
}

const plain: readonly (readonly [what: string, Door, OddRequests, success?: RegExp])[] = [
  ['rest', 'rest', rest],
  ['rest, creating', 'rest', creates],
  ['rest, updating', 'rest', updates],
  ['rest, deleting', 'rest', deletes],
  ['graphql', 'graphql', graphql],
  ['webhook', 'webhook', webhook],
  ['webhook, a signed source', 'webhook', signed],
  ['management', 'management', probes],
  ['management, writing', 'management', levels, /^HTTP\/1\.1 204 /],
];

for (const [what, door, requests, success = /^HTTP\/1\.1 200 /] of plain) {
  test(`${what}: a plain request goes by the fast path; what differs in one thing has Fastify's reply`, async () => {
    await using twins = await startTransportTwins({ env, module: sources });
    await addUsers(twins);
    const [first, ...others] = almostPlain(requests);
    assert.ok(first);
    const before = twins.slowly;
    const { fast, fastify } = await twins.ask(door, [Buffer.concat([Buffer.from(first.head), first.body])]);
    assert.match(fast, success);
    assert.equal(fast, fastify);
    assert.equal(twins.slowly, before);
    for (const other of others) await agree(twins, door, [other], 'each');
    for (const [of, line, body] of pairs) {
      if (of !== what) continue;
      const head = `POST /${door} HTTP/1.1\r\nHost: x\r\n${JSON_LABEL}\r\n${line}\r\nContent-Length: ${body.length}\r\n\r\n`;
      await agree(twins, door, [{ head, body: Buffer.from(body) }], 'each');
    }
    const counted = await sameCounts(twins);
    // The scrape would count itself.
    if (door !== 'management') assert.match(counted, new RegExp(`door="${door}"`));
  });
}

test('with the fast path and without it, random requests have the same replies, and are counted alike', async () => {
  // When the bytes of one request are free again for the next one in the same piece is a matter of the moment.
  const budget = { WEBHOOK_MAX_BYTES_IN_FLIGHT: '10000' };
  await using twins = await startTransportTwins({ env: { ...env, ...budget } });
  await addUsers(twins);
  for (const [door, of, maxLength] of samples) {
    await fc.assert(
      fc.asyncProperty(
        fc.array(oddRequest(of), { minLength: 1, maxLength }),
        fc.constantFrom<Cut[]>('together', 'each', 'each', 'apart'),
        (requests, cut) => agree(twins, door, requests, cut),
      ),
      { numRuns: RUNS },
    );
  }
  await sameCounts(twins);
  assert.deepEqual(twins.fast.log.broken, []);
});
