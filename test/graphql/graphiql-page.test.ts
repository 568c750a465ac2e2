import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'graphql';
import { isSubscription, runOperation } from '../../src/graphql/graphiql/page/fetcher.ts';
import { waitFor } from '../support/wait-for.ts';
import { startFeedApp } from './support/plugin-app.ts';

test('the operation that runs is the named one, or the only one', () => {
  const documentAST = parse('query A { a } subscription B { b } fragment B on C { d }');
  const of = (operationName: string | undefined) =>
    isSubscription({ query: '', ...(operationName && { operationName }) }, { documentAST });
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
    assert.match(JSON.stringify((await broken).value), /The server closed the connection/);
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
    assert.match(JSON.stringify(value), /The server answered 404 Not Found instead of an event stream/);
  });
});
