import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createClient } from 'graphql-sse';
import { waitFor } from '../support/wait-for.ts';
import { ask } from './support/door.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/graphql-plugin');

/** The example as a process of its own, on a free port. */
async function startExample() {
  const child = spawn(process.execPath, [join(EXAMPLE, 'server.ts')], {
    env: { PATH: process.env.PATH, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const origin = await waitFor(
    'the example to listen',
    () => {
      assert.equal(child.exitCode, null, output);
      return /Server listening at (http:\/\/[\w.:]+)/.exec(output)?.[1];
    },
    20_000,
  );
  return {
    origin,
    url: `${origin}/graphql`,
    async stop() {
      child.kill('SIGTERM');
      const [code] = await closed;
      return code as number | null;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

test('what the README of the example shows is what comes back', async () => {
  await using example = await startExample();
  const text = readFileSync(join(EXAMPLE, 'README.md'), 'utf8');
  const shown = [...text.matchAll(/^\$ (curl .+)\n(.+)$/gm)];
  assert.equal(shown.length, 3);
  for (const [, command = '', answer] of shown) {
    const here = command.replace('http://127.0.0.1:4000', example.origin);
    assert.equal((await promisify(execFile)('sh', ['-c', here])).stdout, answer, command);
  }
});

test('the example answers beside its own route, shows GraphiQL, and tells of new books until it stops', async () => {
  await using example = await startExample();
  assert.deepEqual(await (await fetch(example.origin)).json(), { hello: 'world' });
  const page = await fetch(example.url, { headers: { accept: 'text/html' } });
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  assert.deepEqual((await ask(example.url, '{ reader }', { 'x-reader': 'Ada' })).body.data, {
    reader: 'Ada',
  });

  const client = createClient({
    url: example.url,
    singleConnection: false,
    fetchFn: fetch,
    retryAttempts: 0,
  });
  const connected = Promise.withResolvers<void>();
  const query = 'subscription { bookAdded { title author } }';
  const added = client.iterate({ query }, { connected: () => connected.resolve() });
  const first = added.next();
  await connected.promise;
  const mutation = 'mutation { addBook(title: "Emil", author: "Kästner") { title } }';
  await ask(example.url, mutation, { 'x-reader': 'Ada' });
  assert.deepEqual((await first).value, { data: { bookAdded: { title: 'Emil', author: 'Kästner' } } });
  const end = added.next();
  assert.equal(await example.stop(), 0);
  assert.equal((await end).done, true);
});
