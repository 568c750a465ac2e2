import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { createJobPlan } from '../../src/inbox/job-plan.ts';
import { readWebhookSettings } from '../../src/webhook/webhook.ts';
import { engineUrls } from '../support/databases.ts';
import { FORWARD_SECRET, startReceiver } from '../support/receiver.ts';
import { startWebhooks } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/FORWARDING.md'), 'utf8');
const BLOCKS = [...GUIDE.matchAll(/```(ts|json)\n(.*?)```/gs)].map(([, language = '', text = '']) => ({
  language,
  text,
}));
const env = { BILLING_SECRET: FORWARD_SECRET, PEOPLE_SECRET: FORWARD_SECRET };

test('every configuration of the guide can be used as it stands', async () => {
  assert.equal(BLOCKS.length, 7);
  for (const { language, text } of BLOCKS) {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, `portico.config.${language}`), text);
    const { code } = await loadConfig({ argv: [], env, cwd: folder.path, check: readWebhookSettings });
    assert.notEqual(code.forward, undefined);
  }
});

test('a delivery goes to each address of the guide, changed as the guide says', async () => {
  await using receiver = await startReceiver();
  const local = (text: string) =>
    text
      .replaceAll(
        /https?:\/\/([a-z]+)\.example\.com|http:\/\/10\.0\.0\.7:8080/g,
        (_all, name = 'archive') => `${receiver.url}/${name}`,
      )
      .replaceAll(/("?)\burl\b\1: (['"].*?['"])/g, (found) => `${found}, allowPrivate: true`);
  const parts = BLOCKS.map(({ language, text }) =>
    language === 'json' ? local(text) : local(text).replace(/^export default (.*);\n$/s, '$1'),
  );
  const module = `
const parts = [${parts.map((part) => `(${part})`).join(',\n')}];
export default {
  relations: Object.assign({}, ...parts.map(({ relations }) => relations)),
  webhook: { forward: Object.assign({}, ...parts.map(({ webhook }) => webhook.forward)) },
};
`;
  await using door = await startWebhooks(await (engineUrls.SQLite ?? assert.fail)(), module, env);
  const id = await door.post({ event: 'invoice', data: { id: 'in_1', customer: 'c/1', total: 700 } });
  const { jobs } = await door.until(id, 'done');
  assert.deepEqual(jobs.map(({ target }) => target.replace('forward:', '')).sort(), [
    'archive',
    'billing',
    'chat',
    'crm',
    'large-invoices',
    'ledger',
    'partner',
  ]);
  const [crm] = receiver.at('/crm/hooks');
  assert.equal(String(crm?.body), '{"kind":"invoice","customer":"c/1","total":700}');
  assert.deepEqual([crm?.headers['x-event'], crm?.headers['x-customer']], ['invoice', 'customer c/1']);
  const [chat] = receiver.at('/chat/rooms/c%2F1');
  assert.equal(String(chat?.body), JSON.stringify({ text: `invoice ${id}, total 700` }));
  for (const path of [
    '/billing/hooks',
    '/billing/large',
    '/archive/archive',
    '/partner/hooks',
    '/ledger/hooks',
  ]) {
    assert.equal(receiver.at(path).length, 1, path);
  }
  const small = await door.post({ event: 'invoice', data: { customer: 'c', total: 500 } });
  assert.ok(
    !(await door.until(small, 'done')).jobs.some(({ target }) => target === 'forward:large-invoices'),
  );
});

/** The plan of the first module in a section of the guide of the door. */
async function planOf(title: string) {
  const door = readFileSync(join(import.meta.dirname, '../../docs/HANDLERS.md'), 'utf8');
  const [, section = ''] = door.split(`\n## ${title}\n`);
  const [, module = ''] = /```ts\n(.*?)```/s.exec(section) ?? [];
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  const { code } = await loadConfig({ argv: [], env: {}, cwd: folder.path });
  return createJobPlan(code.handlers);
}

test('the times and priorities of the guide of the door are what they are shown for', async () => {
  const plan = await planOf('Times and priorities');
  const job = (event: string, data: object) => {
    const facts = { id: 'id', source: '', event, dataPointer: '/data', receivedAt: 0 };
    const [{ target: _, ...rest } = { target: '' }] = plan(facts, { data });
    return rest;
  };
  const runAt = Date.UTC(2026, 4, 1, 9);
  assert.deepEqual(job('reminder', { remindAt: '2026-05-01T09:00Z' }), { orderKey: null, runAt });
  assert.deepEqual(job('trial_started', {}), { orderKey: null, runAt: 14 * 86_400_000 });
  assert.deepEqual(job('export', { plan: 'premium' }), { orderKey: null, priority: 1 });
  assert.deepEqual(job('export', {}), { orderKey: null });
});

test('the filters of the guide of the door want what they are shown for', async () => {
  const plan = await planOf('Filters');
  const isWanted = (event: string, body: object, source = '') =>
    plan({ id: 'id', source, event, dataPointer: '/data', receivedAt: 0 }, body).length === 1;
  assert.deepEqual(
    ['opened', 'reopened', 'closed'].map((action) => isWanted('issues', { action })),
    [true, true, false],
  );
  const charge = (data: object) => isWanted('charge', { data });
  assert.deepEqual(
    [charge({ amount: 101, id: 'a' }), charge({ amount: 101, id: 'a', refund: null })],
    [true, true],
  );
  for (const other of [{ amount: 100 }, { id: 'test_1' }, { refund: 1 }, { amount: '101' }]) {
    assert.equal(charge({ amount: 101, id: 'a', ...other }), false);
  }
  const push = { data: { ref: 'refs/heads/main' } };
  assert.deepEqual([isWanted('deploy', push, 'github'), isWanted('deploy', push)], [true, false]);
});
