import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { GraphQLString } from 'graphql';
import { waitFor } from '../support/wait-for.ts';
import { aborted, requestBytes, slowField, startSlowApp, TEXTS } from './support/plugin-app.ts';

/** No limit that would end a list before its client does. */
const limits = { maxResultValues: Number.MAX_SAFE_INTEGER, maxResultBytes: Number.MAX_SAFE_INTEGER };

for (const fastPath of [true, false]) {
  describe(`a client that leaves, ${fastPath ? 'fast path' : 'Fastify'}`, () => {
    for (const how of ['resets its connection', 'closes its connection'] as const) {
      test(`${how}: the run ends, and resolvers are told`, async () => {
        const slow = slowField();
        await using app = await startSlowApp({ slow: slow.config }, { fastPath });
        const socket = await app.connect();
        let seen = 0;
        app.app.server.on('request', () => seen++);
        socket.write(requestBytes({ query: '{ slow }' }));
        const signal = await slow.begun;
        assert.equal(seen, fastPath ? 0 : 1, 'the transport');
        assert.equal(signal.aborted, false);
        if (how === 'resets its connection') socket.resetAndDestroy();
        else socket.destroy();
        await aborted(signal);
        await waitFor('the count', () => app.outcomes().abandoned === 1);
        slow.finish();
      });
    }

    test('of a mutation nothing more is begun', async () => {
      const [first, second] = [slowField(), slowField()];
      await using app = await startSlowApp({ first: first.config, second: second.config }, { fastPath });
      const body = requestBytes({ query: 'mutation { first second }' });
      const socket = await app.connect();
      socket.write(body);
      const signal = await first.begun;
      socket.resetAndDestroy();
      await aborted(signal);
      first.finish();
      await nextTick();
      await nextTick();
      assert.equal(second.calls, 0);
      // With somebody to wait for it the same goes on.
      const other = await app.connect();
      other.write(body);
      await second.begun;
      other.destroy();
      second.finish();
    });

    test('lists stop: those that come item by item, and those that are made in turns', async () => {
      const [slow, ended] = [slowField(), Promise.withResolvers<void>()];
      let made = 0;
      const items = {
        type: TEXTS,
        async *resolve() {
          try {
            for (;;) {
              await nextTick();
              yield 'item';
            }
          } finally {
            ended.resolve();
          }
        },
      };
      const long = {
        type: TEXTS,
        *resolve() {
          for (;;) {
            made++;
            yield 'x'.repeat(1_000);
          }
        },
      };
      await using app = await startSlowApp({ slow: slow.config, items, long }, { fastPath, limits });
      const socket = await app.connect();
      socket.write(requestBytes({ query: '{ slow items long }' }));
      const signal = await slow.begun;
      socket.resetAndDestroy();
      await aborted(signal);
      await ended.promise;
      const then = made;
      for (let i = 0; i < 20; i++) await nextTick();
      assert.equal(made, then);
      slow.finish();
    });

    test('a list that is made in turns asks for no further item', async () => {
      const [reached, gate, ended] = [0, 1, 2].map(() => Promise.withResolvers<void>());
      const [slow, never] = [slowField(), new Promise<never>(() => {})];
      const items = {
        type: TEXTS,
        async *resolve() {
          try {
            for (let i = 0; i < 2; i++) {
              // Longer than the slice of a run.
              for (const until = performance.now() + 20; performance.now() < until; );
              yield 'x'.repeat(100_000);
            }
            reached?.resolve();
            await gate?.promise;
            yield 'asked for already';
            await never;
          } finally {
            ended?.resolve();
          }
        },
      };
      await using app = await startSlowApp({ slow: slow.config, items }, { fastPath, limits });
      const socket = await app.connect();
      socket.write(requestBytes({ query: '{ slow items }' }));
      await reached?.promise;
      socket.resetAndDestroy();
      await aborted(await slow.begun);
      gate?.resolve();
      await ended?.promise;
      slow.finish();
    });

    test('all operations of a batch end', async () => {
      const slow = Array.from({ length: 12 }, slowField);
      const fields = Object.fromEntries(slow.map(({ config }, i) => [`a${i}`, config]));
      await using app = await startSlowApp(fields, { fastPath, maxBatch: 12 });
      const warnings: Error[] = [];
      const warn = (warning: Error) => void warnings.push(warning);
      process.on('warning', warn);
      const socket = await app.connect();
      socket.write(requestBytes(slow.map((_field, i) => ({ query: `{ a${i} }` }))));
      const signals = await Promise.all(slow.map(({ begun }) => begun));
      socket.resetAndDestroy();
      await Promise.all(signals.map(aborted));
      await nextTick();
      process.off('warning', warn);
      assert.deepEqual(warnings, []);
      for (const { finish } of slow) finish();
    });

    test('one that only closes its half has its reply if that comes soon, and else is told why there is none', async () => {
      const slow = [slowField(), slowField()];
      const fields = Object.fromEntries(slow.map(({ config }, i) => [`a${i}`, config]));
      await using app = await startSlowApp(fields, { fastPath });
      const results = slow.map(async ({ begun, finish }, i) => {
        const socket = await app.connect();
        const text = socket.setEncoding('utf8').reduce((sum: string, piece: string) => sum + piece, '');
        socket.end(requestBytes({ query: `{ a${i} }` }));
        await begun;
        if (i === 0) finish();
        return JSON.parse((await text).split('\r\n\r\n')[1] ?? '');
      });
      const [soon, late] = await Promise.all(results);
      assert.deepEqual(soon, { data: { a0: 'done' } });
      assert.equal(late.errors[0].extensions.code, 'CLIENT_GONE');
      slow[1]?.finish();
    });

    test('requests that end in time leave nothing behind on their connection', async () => {
      const later = { type: GraphQLString, resolve: () => nextTick('later') };
      await using app = await startSlowApp({ later }, { fastPath });
      const accepted = once(app.app.server, 'connection');
      const socket = await app.connect();
      const [served] = await accepted;
      const ask = async () => {
        socket.write(requestBytes({ query: '{ later }' }));
        const [bytes] = (await once(socket, 'data')) as [Buffer];
        assert.match(bytes.toString(), /"later"/);
      };
      await ask();
      const before = [served.listenerCount('end'), served.listenerCount('close')];
      for (let i = 0; i < 20; i++) await ask();
      assert.deepEqual([served.listenerCount('end'), served.listenerCount('close')], before);
      assert.deepEqual(app.outcomes(), { success: 21 });
      socket.destroy();
    });
  });
}

test('the event of a subscription that is being made ends with its reader', async () => {
  const slow = slowField();
  const events = {
    type: GraphQLString,
    async *subscribe() {
      yield 1;
    },
    resolve: slow.config.resolve,
  };
  await using app = await startSlowApp({ events } as Parameters<typeof startSlowApp>[0]);
  const leaving = new AbortController();
  const query = new URLSearchParams({ query: 'subscription { events }' });
  const headers = { accept: 'text/event-stream' };
  await fetch(`${app.url}?${query}`, { headers, signal: leaving.signal });
  const signal = await slow.begun;
  leaving.abort();
  await aborted(signal);
  slow.finish();
});

test("the context's signal is made when it is asked for, and aborted once its client has left", async () => {
  const slow = slowField();
  const signals: AbortSignal[] = [];
  const context = (_request: unknown, details: { readonly abortSignal: AbortSignal }) => details;
  const resolve = (_root: unknown, _args: unknown, details: unknown) => {
    const { abortSignal } = details as { readonly abortSignal: AbortSignal };
    signals.push(abortSignal, (details as { readonly abortSignal: AbortSignal }).abortSignal);
    return 'asked';
  };
  const asks = { type: GraphQLString, resolve };
  await using app = await startSlowApp({ asks, slow: slow.config }, { context, fastPath: true });
  const socket = await app.connect();
  socket.write(requestBytes({ query: '{ asks slow }' }));
  await slow.begun;
  const [signal, same] = signals;
  assert.ok(signal !== undefined && signal === same && !signal.aborted);
  socket.resetAndDestroy();
  await aborted(signal);
  slow.finish();
});
