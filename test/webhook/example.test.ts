import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand } from '../support/run-command.ts';
import {
  checkShownRequests,
  runShown,
  shownCommand,
  shownCommands,
  startExample,
} from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const SERVE = shownCommand('examples/webhook-plugin/README.md', /^npm exec -- node /);
const REQUESTS = shownCommands('examples/webhook-plugin/README.md', /^curl /);
const SEND = shownCommand('examples/webhook-plugin/README.md', /^npm exec -- portico send /);
const LIST = shownCommand('examples/webhook-plugin/README.md', /^DATABASE_URL=.* deliveries list$/);

interface Item {
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
}

const list = async (cwd: string, ...args: readonly string[]) => {
  const env = { DATABASE_URL: 'sqlite:webhooks.db' };
  const { stdout } = await runCommand(['deliveries', 'list', '--json', ...args], { cwd, env });
  return (JSON.parse(stdout) as { items: readonly Item[] }).items;
};

test('what the README of the example shows is what comes back, and its handlers run', async () => {
  await using folder = await temporaryFolder();
  await using example = await startExample(SERVE, { cwd: folder.path });
  assert.deepEqual(await (await fetch(example.origin)).json(), { hello: 'world' });
  await checkShownRequests(REQUESTS, { webhook: example.origin });
  const place = { cwd: folder.path, urls: { webhook: example.origin } };
  const sent = await runShown(SEND, place);
  assert.equal(sent.code, 0, sent.stderr);
  await waitFor('both to be handled', () => example.count('deploying') === 2);
  assert.match((await runShown(LIST, place)).stdout, / new_commit \(push\) +github /);
  assert.equal(await example.stop('SIGTERM'), 0);
  assert.deepEqual(
    (await list(folder.path)).map(({ status }) => status),
    ['done', 'done'],
  );
});

test('what was acknowledged is there after a kill, and handled to the last after the next start', async () => {
  await using folder = await temporaryFolder();
  await using first = await startExample(SERVE, { cwd: folder.path });
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
  await using second = await startExample(SERVE, { cwd: folder.path });
  await waitFor(
    'all to be done',
    async () => (await list(folder.path, '--status', 'done', '--limit', '100')).length === sent,
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
