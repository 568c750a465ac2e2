import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { samplesOf } from '../../src/signatures/samples.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';

const SHARED = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const SENDERS = {
  standard: { secrets: SHARED },
  github: { secrets: 'a' },
  stripe: { secrets: 'b' },
  slack: { secrets: 'c' },
  shopify: { secrets: 'd' },
  gitlab: { secrets: ['e', SHARED] },
  paypal: { secrets: ['8PT597110X687430LKGECATA', { file: 'paypal.pem' }] },
  // The service does not see this URL: a proxy stands before it.
  twilio: { secrets: 'f', url: 'https://hooks.example.com/webhook/twilio' },
  linear: { secrets: 'g' },
  clerk: { secrets: SHARED },
  resend: { secrets: SHARED },
  discord: { secrets: `whsk_${Buffer.alloc(32, 5).toString('base64')}` },
} as const;
const names = Object.keys(SENDERS) as (keyof typeof SENDERS)[];
const sources = {
  ...Object.fromEntries(names.map((name) => [name, { scheme: name, ...SENDERS[name] }])),
  locked: { scheme: 'discord', secrets: '0'.repeat(63).concat('1') },
};

describe('samples', () => {
  let folder: TemporaryFolder;
  let service: PorticoProcess;
  let database: Database;
  before(async () => {
    folder = await temporaryFolder();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    await writeFile(join(folder.path, 'paypal.pem'), pem);
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ webhook: { sources } }));
    const login = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: 'right' };
    service = startPortico({ cwd: folder.path, env: login });
    await service.ready();
    database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  });
  after(async () => {
    await database[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const send = (...args: string[]) =>
    runCommand(['send', ...args], {
      cwd: folder.path,
      env: { PORT: new URL(service.urls.webhook ?? '').port },
    });
  const newest = async () => {
    const { items } = await database.deliveries.list({}, 1);
    const found = await database.deliveries.find(items[0]?.id ?? '');
    return found ?? assert.fail('nothing is stored');
  };

  for (const name of names) {
    test(`${name}: every sample is accepted, and stored under its event`, async () => {
      for (const { event } of samplesOf(name)) {
        const { code, stdout, stderr } = await send('--source', name, '--event', event);
        const answer = name === 'discord' ? '204 No Content\n' : '200 OK\nWebhook received\n';
        assert.deepEqual([code, stdout], [0, answer], `${event}: ${stderr}`);
        const stored = await newest();
        assert.deepEqual([stored.source, stored.senderEvent ?? stored.event], [name, event]);
        assert.ok(stored.body.length > 80, event);
      }
    });
  }

  test('an unknown event is sent without data, and the known ones are listed', async () => {
    const { code, stderr } = await send('--source', 'linear', '--event', 'Isue');
    assert.equal(code, 0);
    assert.match(stderr, /no sample of Isue, so it had no data\. Samples: Issue, Comment\./);
    const own = await send('--source', 'linear', '--event', 'Project', '--data', '{"id":7}');
    assert.equal(own.code, 0);
    assert.doesNotMatch(own.stderr, /no sample/);
  });

  test('the console gets the samples from the service, and sends them', async () => {
    const url = `${service.urls.management}/actuator/console/api/test-deliveries`;
    type Offered = { name: string; samples: { event: string; data: unknown }[] };
    const authorization = `Basic ${Buffer.from('ops:right').toString('base64')}`;
    const answered = await fetch(url, { headers: { authorization } });
    const { sources: offered } = (await answered.json()) as { sources: Offered[] };
    assert.deepEqual(
      offered.map(({ name }) => name),
      ['', ...names, 'locked'],
    );
    const headers = { authorization, 'content-type': 'application/json', 'x-portico-console': '1' };
    const sendBy = async (source: string, { event, data }: { event: string; data: unknown }) => {
      const body = JSON.stringify({ source, event, data });
      const reply = await fetch(url, { method: 'POST', headers, body });
      return [reply.status, (await reply.json()) as { status?: number; message?: string }] as const;
    };
    for (const { name, samples } of offered.slice(1, -1)) {
      const [first] = samples;
      assert.ok(first, name);
      const [, answer] = await sendBy(name, first);
      assert.equal(answer.status, name === 'discord' ? 204 : 200, name);
      const stored = await newest();
      assert.deepEqual([stored.source, stored.senderEvent ?? stored.event], [name, first.event]);
    }
    const [status, { message }] = await sendBy('locked', { event: 'ENTITLEMENT_CREATE', data: {} });
    assert.deepEqual(
      [status, message],
      [400, 'A secret that can sign is required: a private key that begins with whsk_'],
    );
  });

  test('a form is built from data, and refuses what it cannot hold', async () => {
    const sent = await send('--source', 'twilio', '--event', 'call.busy', '--data', '{"To":"+1"}');
    assert.equal(sent.code, 0, sent.stderr);
    const { event, body, contentType } = await newest();
    assert.deepEqual(
      [event, Buffer.from(body).toString(), contentType],
      ['call.busy', 'To=%2B1&CallStatus=busy', 'application/x-www-form-urlencoded'],
    );
    const nested = await send('--source', 'twilio', '--event', 'call.busy', '--data', '{"To":{}}');
    assert.match(nested.stderr, /a form cannot hold the field "To"/);
  });

  test("Discord's pings are answered and not stored", async () => {
    const before = await newest();
    for (const [body, answer] of [
      ['{"version":1,"type":0}', '204 No Content\n'],
      ['{"type":1}', '200 OK\n{"type":1}\n'],
    ] as const) {
      const { code, stdout } = await send('--source', 'discord', '--body', body);
      assert.deepEqual([code, stdout], [0, answer]);
    }
    assert.equal((await newest()).seq, before.seq);
  });
});
