import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runPortico } from '../support/portico-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/webhook-plugin');

/** The example as a process of its own, on a free port, with its database in a folder. */
async function startExample(folder: string) {
  const child = spawn(process.execPath, [join(EXAMPLE, 'server.ts')], {
    cwd: folder,
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
    count: (text: string) => output.split(text).length - 1,
    async stop(signal: 'SIGTERM' | 'SIGKILL') {
      child.kill(signal);
      const [code] = await closed;
      return code as number | null;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

const list = async (cwd: string, ...args: readonly string[]) => {
  const env = { DATABASE_URL: 'sqlite:webhooks.db' };
  const { stdout } = await runPortico(['deliveries', 'list', '--json', ...args], { cwd, env });
  return (JSON.parse(stdout) as { items: readonly { id: string; status: string }[] }).items;
};

test('what the README of the example shows is what comes back, and its handlers run', async () => {
  await using folder = await temporaryFolder();
  await using example = await startExample(folder.path);
  assert.deepEqual(await (await fetch(example.origin)).json(), { hello: 'world' });
  const text = readFileSync(join(EXAMPLE, 'README.md'), 'utf8');
  const shown = [...text.matchAll(/^\$ (curl .+)\n(.+)$/gm)];
  assert.equal(shown.length, 2);
  for (const [, command = '', answer] of shown) {
    const here = command.replace('http://127.0.0.1:3000', example.origin);
    assert.equal((await promisify(execFile)('sh', ['-c', here])).stdout, answer, command);
  }
  const [, send = ''] = /^\$ npm exec -- portico (send .+)$/m.exec(text) ?? [];
  const words = [...send.replace('http://127.0.0.1:3000', example.origin).matchAll(/'([^']*)'|\S+/g)];
  const sent = await runPortico(
    words.map(([word, quoted]) => quoted ?? word),
    { cwd: folder.path },
  );
  assert.equal(sent.code, 0, sent.stderr);
  await waitFor('both to be handled', () => example.count('deploying') === 2);
  assert.equal(await example.stop('SIGTERM'), 0);
  assert.deepEqual(
    (await list(folder.path)).map(({ status }) => status),
    ['done', 'done'],
  );
});

test('what was acknowledged is there after a kill, and handled to the last after the next start', async () => {
  await using folder = await temporaryFolder();
  await using first = await startExample(folder.path);
  const headers = { 'x-webhook-token': 'demo-token' };
  const post = async (event: string, data: unknown) => {
    const body = JSON.stringify({ event, data });
    const reply = await fetch(`${first.origin}/webhook`, { method: 'POST', headers, body });
    assert.equal(await reply.text(), 'Webhook received');
  };
  const sent = 40;
  await Promise.all(Array.from({ length: sent }, (_, i) => post('order', { customer: i % 3, i })));
  await post('nobody', {});
  await first.stop('SIGKILL');
  assert.equal((await list(folder.path, '--limit', '100')).length, sent + 1);
  await using second = await startExample(folder.path);
  await waitFor(
    'all to be done',
    async () => (await list(folder.path, '--status', 'done', '--limit', '100')).length === sent,
    20_000,
  );
  const packed = first.count('packing') + second.count('packing');
  assert.ok(packed >= sent, `${packed}`);
  assert.equal(await second.stop('SIGTERM'), 0);
  assert.equal((await list(folder.path, '--status', 'unhandled')).length, 1);
});
