import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'graphql';
import { runOperation } from '../../src/graphql/graphiql/page/fetcher.ts';
import { isSubscription } from '../../src/graphql/graphiql/page/operation.ts';
import { readEvents, type ServerEvent } from '../../src/graphql/graphiql/page/read-events.ts';
import { waitFor } from '../support/wait-for.ts';
import { startFeedApp } from './support/feed-app.ts';

async function eventsOf(pieces: readonly Uint8Array[]): Promise<readonly ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(ReadableStream.from(pieces))) events.push(event);
  return events;
}

describe('server-sent events', () => {
  const bytes = (text: string) => [new TextEncoder().encode(text)];

  test('have a name and data, each line of it', async () => {
    const text =
      ':comment\n\nevent: next\ndata: a\ndata:b\nid: 5\n\ndata: é𝒳\n\nevent: complete\ndata: \n\ndata: lost';
    assert.deepEqual(await eventsOf(bytes(text)), [
      { name: 'next', data: 'a\nb' },
      { name: 'message', data: 'é𝒳' },
      { name: 'complete', data: '' },
    ]);
  });

  test('are the same however the bytes are cut and the lines end', async () => {
    const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[\r\n]/g, ''));
    const event = fc.record({
      name: line.filter((name) => name !== ''),
      data: fc.array(line, { minLength: 1 }),
    });
    const property = fc.asyncProperty(
      fc.array(event, { maxLength: 5 }),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat(), { maxLength: 20 }),
      async (events, end, cuts) => {
        const lines = events.flatMap(({ name, data }) => [
          ':',
          `event: ${name}`,
          ...data.map((one) => `data: ${one}`),
          '',
        ]);
        // A carriage return at the very end may still become a pair.
        const all = new TextEncoder().encode(
          lines.map((one) => one + end).join('') + (end === '\r' ? ':' : ''),
        );
        const at = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
        const pieces = at.slice(1).map((to, index) => all.subarray(at[index], to));
        const expected = events.map(({ name, data }) => ({ name, data: data.join('\n') }));
        assert.deepEqual(await eventsOf(pieces), expected);
      },
    );
    await fc.assert(property);
  });
});

test('the operation that runs is the named one, or the only one', () => {
  const documentAST = parse('query A { a } subscription B { b } fragment B on C { d }');
  const of = (operationName: string | undefined) =>
    isSubscription({ query: '', operationName }, { documentAST });
  assert.deepEqual([of('A'), of('B'), of(undefined)], [false, true, false]);
  const only = { documentAST: parse('fragment F on S { a } subscription { a }') };
  assert.equal(isSubscription({ query: '' }, only), true);
  assert.equal(isSubscription({ query: '' }), false);
});

describe('what the page runs', () => {
  const subscription = 'subscription { userCreated { id name } }';
  const documentAST = parse(subscription);

  test('a subscription gives its results until they are no longer wanted', async () => {
    await using server = await startFeedApp();
    const run = runOperation(server.url);
    const results = run({ query: subscription }, { documentAST }) as AsyncIterableIterator<unknown>;
    const first = results.next();
    await waitFor('the subscription', () => server.feed.subscribers === 1);
    const query = 'mutation { createUser(name: "Ada", email: "a@b") { id } }';
    assert.deepEqual(await run({ query }), { data: { createUser: { id: '3' } } });
    assert.deepEqual(await first, {
      value: { data: { userCreated: { id: '3', name: 'Ada' } } },
      done: false,
    });
    const waiting = results.next();
    await results.return?.();
    assert.deepEqual(await waiting, { value: undefined, done: true });
    await waitFor('no subscription', () => server.feed.subscribers === 0);
  });

  test('it ends with the server, which is said if it was cut', async () => {
    await using server = await startFeedApp();
    const run = () => runOperation(server.url)({ query: subscription }, { documentAST });
    const cut = run() as AsyncIterableIterator<unknown>;
    const broken = cut.next();
    await waitFor('the subscription', () => server.feed.subscribers === 1);
    server.app.server.closeAllConnections();
    assert.match(JSON.stringify((await broken).value), /The server broke off/);
    assert.equal((await cut.next()).done, true);
    await waitFor('no subscription', () => server.feed.subscribers === 0);
    const complete = run() as AsyncIterableIterator<unknown>;
    const last = complete.next();
    await waitFor('the subscription', () => server.feed.subscribers === 1);
    await server.app.close();
    assert.equal((await last).done, true);
    const none = run() as AsyncIterableIterator<unknown>;
    assert.match(JSON.stringify((await none.next()).value), /The server cannot be reached/);
    assert.equal((await none.next()).done, true);
  });

  test('an answer that has no events is told', async () => {
    await using server = await startFeedApp();
    const results = runOperation(`${server.url}/nowhere`)({ query: subscription }, { documentAST });
    const { value } = await (results as AsyncIterableIterator<unknown>).next();
    assert.match(JSON.stringify(value), /The server answered 404 Not Found without events/);
  });
});
