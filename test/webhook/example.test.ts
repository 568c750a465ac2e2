import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkShownRequests, readmeOf, startExample } from '../support/example-process.ts';
import { runPortico } from '../support/portico-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const EXAMPLE = 'webhook-plugin';

interface Item {
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
}

const list = async (cwd: string, ...args: readonly string[]) => {
  const env = { DATABASE_URL: 'sqlite:webhooks.db' };
  const { stdout } = await runPortico(['deliveries', 'list', '--json', ...args], { cwd, env });
  return (JSON.parse(stdout) as { items: readonly Item[] }).items;
};

test('what the README of the example shows is what comes back, and its handlers run', async () => {
  await using folder = await temporaryFolder();
  await using example = await startExample(EXAMPLE, { cwd: folder.path });
  assert.deepEqual(await (await fetch(example.origin)).json(), { hello: 'world' });
  await checkShownRequests(EXAMPLE, { 'http://127.0.0.1:3000': example.origin }, 2);
  const [, send = ''] = /^\$ npm exec -- portico (send .+)$/m.exec(readmeOf(EXAMPLE)) ?? [];
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
  await using first = await startExample(EXAMPLE, { cwd: folder.path });
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
  const kept = await list(folder.path, '--limit', '100');
  assert.equal(kept.length, sent + 1);
  await using second = await startExample(EXAMPLE, { cwd: folder.path });
  await waitFor(
    'all to be done',
    async () => (await list(folder.path, '--status', 'done', '--limit', '100')).length === sent,
    20_000,
  );
  // What the first one wrote before the kill may never have come here; the second one ends in order.
  assert.equal(await second.stop('SIGTERM'), 0);
  const left = kept.filter(({ event, status }) => event === 'order' && status !== 'done');
  assert.equal(
    second.count('packing'),
    left.length,
    'the handler ran for each that was not done, and no other',
  );
  const done = await list(folder.path, '--status', 'done', '--limit', '100');
  assert.equal(new Set(done.map(({ id }) => id)).size, sent);
  assert.ok(done.every(({ event, attempts }) => event === 'order' && attempts >= 1));
  assert.equal((await list(folder.path, '--status', 'unhandled')).length, 1);
});
