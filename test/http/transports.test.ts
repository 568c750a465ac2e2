import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { almostPlain, pieces } from '../support/odd-requests.ts';
import { inFull } from '../support/proof-settings.ts';
import {
  type AskOptions,
  DELIVERY,
  latestDelivery,
  listedRoutes,
  sameCounts,
  sameExchanges,
  startTransportTwins,
  type TransportTwins,
} from '../support/transport-twins.ts';
import { JSON_LABEL } from './door-requests.ts';
import { addContents, configModule, doorSamples, env, managementSamples, RELATIONS } from './samples.ts';

/** Things that make a difference only together, by the sample that they belong to. */
const pairs: readonly (readonly [what: string, line: string, body: string])[] = [
  ['graphql', 'Accept: application/json, text/event-stream', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"{helo}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: text/plain', '{"query":'],
  // It would fit the budget once, not twice.
  ['webhook', 'X-Webhook-Token: sesame', `{"event":"x"${' '.repeat(250 - 12)}`],
];

async function openTwins(hasRows: boolean): Promise<TransportTwins> {
  const module = configModule('', hasRows ? RELATIONS : '');
  const twins = await startTransportTwins({ env, module });
  await addContents(twins, hasRows);
  return twins;
}

/** One pair per door, and one with relations, because requests to one of them change nothing that another one shows. */
const pairOf = new Map<string, TransportTwins>();
after(async () => {
  for (const twins of pairOf.values()) await twins[Symbol.asyncDispose]();
});

for (const {
  what,
  door,
  requests,
  success = /^HTTP\/1\.1 200 /,
  volatile = false,
  slow = false,
  hasRows = false,
} of [...doorSamples, ...managementSamples]) {
  const title = slow ? 'Fastify answers' : 'a plain request goes by the fast path';
  test(`${what}: ${title}; what differs in one thing has Fastify's reply`, async () => {
    const pair = `${door} ${hasRows}`;
    const twins = pairOf.get(pair) ?? (await openTwins(hasRows));
    pairOf.set(pair, twins);
    const options: AskOptions = { volatile, delivery: await latestDelivery(twins) };
    const [first, ...others] = almostPlain(requests);
    assert.ok(first);
    const before = twins.slowly;
    const { fast, fastify } = await twins.ask(
      door,
      [Buffer.concat([Buffer.from(first.head), first.body])],
      options,
    );
    assert.match(fast, success);
    assert.equal(fast, fastify);
    assert.equal(twins.slowly, before + (slow ? 1 : 0));
    for (const other of others) await twins.agree(door, pieces([other], 'each'), options);
    for (const [of, line, body] of pairs) {
      if (of !== what) continue;
      const head = `POST /${door} HTTP/1.1\r\nHost: x\r\n${JSON_LABEL}\r\n${line}\r\nContent-Length: ${body.length}\r\n\r\n`;
      await twins.agree(door, pieces([{ head, body: Buffer.from(body) }], 'each'), options);
    }
    assert.match(await sameCounts(twins), new RegExp(`door="${door}"`));
    await sameExchanges(twins, { volatile });
  });
}

/** A dump stops the process for a while, a profile takes seconds. */
const SLOW = new Set(['GET /actuator/heapdump', 'GET /actuator/cpuprofile']);
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

const ACCEPTS = ['*/*', 'text/plain', 'application/json', 'application/openmetrics-text'];

test('every route that a door lists has the same reply to every method and every Accept header', async () => {
  await using twins = await openTwins(true);
  const options: AskOptions = { volatile: true, delivery: await latestDelivery(twins) };
  const routes = await listedRoutes(twins.fast);
  assert.deepEqual(await listedRoutes(twins.fastify), routes);
  assert.ok(routes.length > 30);
  for (const [at, [door, path]] of routes.entries()) {
    // Under `npm test` a third of the routes is asked with every Accept header.
    const accepts = inFull || at % 3 === 0 ? ACCEPTS : ACCEPTS.slice(0, 1);
    const targets = ['1', 'no', DELIVERY].map((param) => path.replace(/:\w+$|\*$/, param));
    for (const target of new Set(targets)) {
      const asked = [
        ...METHODS.map((method) => [method, 'text/html']),
        ...accepts.map((accept) => ['GET', accept]),
      ];
      for (const [method = '', accept] of asked) {
        if (SLOW.has(`${method} ${target}`)) continue;
        const head = `${method} ${target} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`;
        await twins.agree(door, pieces([{ head, body: new Uint8Array() }], 'each'), options);
      }
    }
  }
  await sameCounts(twins);
});
