import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { enqueue, openDatabase } from 'portico/database';
import Stripe from 'stripe';
import { engineUrls } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { runPortico } from '../support/portico-process.ts';
import { startReceiver } from '../support/receiver.ts';
import { runCommand } from '../support/run-command.ts';
import { startWebhooks } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// Signed senders name their events, and their sources rename some. What is configured by either name has to work.
const SOURCES = `
    sources: {
      github: { scheme: 'github', secrets: 'gh-secret' },
      stripe: { scheme: 'stripe', secrets: 'st-secret' },
    },`;
const SEEN = `const seen = (by) => (got, { log }) => log.info({ by, got }, 'handled');`;
const { webhooks: stripe } = new Stripe('sk_test_unused');

type Webhooks = Awaited<ReturnType<typeof startWebhooks>>;
type Got = Readonly<Record<string, unknown>>;

/** Sends a delivery as GitHub does; gives its id. */
async function fromGithub({ service }: Webhooks, event: string, body: unknown): Promise<string> {
  const text = JSON.stringify(body);
  const headers = { 'x-github-event': event, 'x-hub-signature-256': await sign('gh-secret', text) };
  return accepted(
    await fetch(`${service.urls.webhook}/webhook/github`, { method: 'POST', body: text, headers }),
  );
}

/** Sends an event as Stripe does; gives the id of the delivery. */
async function fromStripe({ service }: Webhooks, event: Got): Promise<string> {
  const payload = JSON.stringify({ object: 'event', ...event });
  const signature = stripe.generateTestHeaderString({ payload, secret: 'st-secret' });
  const init = { method: 'POST', body: payload, headers: { 'stripe-signature': signature } };
  return accepted(await fetch(`${service.urls.webhook}/webhook/stripe`, init));
}

async function accepted(reply: Response): Promise<string> {
  assert.equal(await reply.text(), 'Webhook received');
  return reply.headers.get('x-delivery-id') ?? '';
}

/** What the handler of a delivery has logged, once it has run. */
async function handled(hooks: Webhooks, id: string) {
  const entry = await waitFor(`${id} to be handled`, () =>
    hooks.logged('handled').find(({ delivery }) => delivery === id),
  );
  return { by: entry.by, got: entry.got as Got, entry };
}

const targetsOf = async (hooks: Webhooks, id: string) =>
  (await hooks.show(id)).jobs.map(({ target, status }) => `${target} ${status}`);

const PAYMENT = {
  id: 'evt_1',
  type: 'payment_intent.succeeded',
  account: 'acct_1',
  livemode: false,
  data: { object: { amount: 700 } },
};

for (const [engine, url] of Object.entries(engineUrls)) {
  test(`${engine}: a handler under the sender's own name runs, before one under the name that the event gets`, async () => {
    await using hooks = await startWebhooks(
      await url(),
      `${SEEN}
      export default { webhook: { ${SOURCES} handlers: {
        push: seen('push'),
        'payment_intent.succeeded': seen('sender'),
        payment_received: { handler: seen('renamed'), isolate: true },
        'charge.succeeded': { handler: seen('isolated'), isolate: true },
      } } };`,
    );
    const payment = await handled(hooks, await fromStripe(hooks, PAYMENT));
    assert.deepEqual(
      [payment.by, payment.got.event, payment.got.senderEvent, payment.got.data],
      ['sender', 'payment_intent.succeeded', 'payment_intent.succeeded', PAYMENT.data],
    );
    // The sender's envelope comes without an option.
    assert.deepEqual(payment.got.body, { object: 'event', ...PAYMENT });

    const names = async (type: string) => {
      const { by, got, entry } = await handled(
        hooks,
        await fromStripe(hooks, { ...PAYMENT, id: type, type }),
      );
      const { account, livemode } = got.body as Got;
      assert.deepEqual(
        [account, livemode, entry.event, entry.senderEvent],
        ['acct_1', false, 'payment_received', type],
      );
      return [by, got.event, got.senderEvent];
    };
    assert.deepEqual(await names('invoice.paid'), ['renamed', 'payment_received', 'invoice.paid']);
    assert.deepEqual(await names('charge.succeeded'), ['isolated', 'charge.succeeded', 'charge.succeeded']);

    const push = await fromGithub(hooks, 'push', { ref: 'refs/heads/main' });
    assert.equal((await handled(hooks, push)).by, 'push');
    await hooks.until(push, 'done');
    assert.deepEqual(await targetsOf(hooks, push), ['handler:push done']);
    const opened = await handled(hooks, await hooks.post({ event: 'push', data: 7 }));
    assert.deepEqual([opened.by, opened.got.data, opened.got.body], ['push', 7, { event: 'push', data: 7 }]);
  });

  test(`${engine}: rules and addresses go by either name, and so do lists, which show both`, async () => {
    await using receiver = await startReceiver();
    const address = (path: string) => `url: '${receiver.url}/${path}', allowPrivate: true`;
    const databaseUrl = await url();
    await using hooks = await startWebhooks(
      databaseUrl,
      `${SEEN}
      export default { webhook: { ${SOURCES}
        handlers: {
          push: { handler: seen('push'), when: ({ event, senderEvent, body }) => event === 'push' && senderEvent === 'push' && body.ref !== 'no' },
          payment_received: { handler: seen('renamed'), when: ({ event, senderEvent }) => event === 'payment_received' && senderEvent === 'invoice.paid' },
        },
        forward: {
          own: { ${address('own')}, events: ['push'], transform: { headers: { 'x-names': '{event} {senderEvent}' } } },
          renamed: { ${address('renamed')}, events: ['new_commit', 'push'], transform: ({ event, senderEvent }) => ({ headers: { 'x-names': event + ' ' + senderEvent } }) },
          rule: { ${address('rule')}, when: ({ event, senderEvent }) => event === 'new_commit' && senderEvent === 'push' },
          other: { ${address('other')}, events: ['ping'] },
        },
      } };`,
    );
    const push = await fromGithub(hooks, 'push', { ref: 'yes' });
    assert.equal((await handled(hooks, push)).by, 'push');
    await hooks.until(push, 'done');
    assert.deepEqual((await targetsOf(hooks, push)).toSorted(), [
      'forward:own done',
      'forward:renamed done',
      'forward:rule done',
      'handler:push done',
    ]);
    assert.deepEqual(receiver.got.map(({ headers }) => headers['x-names']).toSorted(), [
      'new_commit push',
      'new_commit push',
      undefined,
    ]);
    const refused = await fromGithub(hooks, 'push', { ref: 'no' });
    await hooks.until(refused, 'done');
    assert.ok(!(await targetsOf(hooks, refused)).some((target) => target.startsWith('handler:')));
    assert.equal(
      (await handled(hooks, await fromStripe(hooks, { id: 'evt_2', type: 'invoice.paid' }))).by,
      'renamed',
    );
    // What a filter of the handler does not want is not unhandled, by whichever name the handler has.
    const filtered = await fromStripe(hooks, { id: 'evt_3', type: 'charge.succeeded' });
    await hooks.until(filtered, 'unhandled');
    const [entry] = await waitFor('the entry', () => {
      const entries = hooks.logged('delivery filtered');
      return entries.length > 0 && entries;
    });
    assert.deepEqual(
      [entry?.delivery, entry?.event, entry?.senderEvent],
      [filtered, 'payment_received', 'charge.succeeded'],
    );

    const listed = async (event: string) => {
      const reply = await fetch(`${hooks.service.urls.management}/actuator/deliveries?event=${event}`);
      const { items } = (await reply.json()) as { items: readonly Got[] };
      return items.map(({ id, event, senderEvent }) => [id, event, senderEvent]);
    };
    const both = [refused, push].map((id) => [id, 'new_commit', 'push']);
    assert.deepEqual(await listed('push'), both);
    assert.deepEqual(await listed('new_commit'), both);
    assert.deepEqual(await listed('charge.succeeded'), [[filtered, 'payment_received', 'charge.succeeded']]);
    assert.deepEqual(await listed('refunded'), []);
    const cli = { cwd: hooks.service.folder, env: { DATABASE_URL: databaseUrl } };
    for (const event of ['push', 'new_commit']) {
      const list = await runCommand(['deliveries', 'list', '--event', event], cli);
      assert.match(
        list.stdout,
        new RegExp(`${push} +done +\\S+ +new_commit \\(push\\) +github`),
        list.stderr,
      );
    }
    const show = await runCommand(['deliveries', 'show', push], cli);
    assert.match(show.stdout, /^Event {5}new_commit \(push\)$/m);
  });

  test(`${engine}: a replay goes to the handler that the event has now, by either name`, async () => {
    const databaseUrl = await url();
    let before: readonly string[];
    {
      // Nothing of the module handles these, so the demonstration of the contract does.
      await using hooks = await startWebhooks(databaseUrl, `export default { webhook: { ${SOURCES} } };`);
      before = [await fromGithub(hooks, 'push', { ref: 'a' }), await fromStripe(hooks, PAYMENT)];
      for (const id of before) await hooks.until(id, 'done');
      assert.equal(hooks.logged('commit notification processed').length, 1);
      assert.deepEqual(await targetsOf(hooks, before[0] ?? ''), ['handler:new_commit done']);
    }
    // Without the sender's own name of the event, which only its headers tell.
    const old = newDelivery({
      source: 'github',
      event: 'new_commit',
      dataPointer: '',
      headers: '{"x-github-event":"push"}',
      body: Buffer.from('{"ref":"old"}'),
      jobs: [{ target: 'handler:new_commit', orderKey: null }],
    });
    {
      await using database = await openDatabase(databaseUrl);
      await database.inbox.append(old);
      const [job] = await database.inbox.claim('handler:new_commit', 1, 'me', 5_000);
      assert.ok(job);
      assert.equal(await database.inbox.settle(job, 'me', { kind: 'dead', error: 'Error: at first' }), true);
    }
    const module = (handlers: string) =>
      `${SEEN} export default { webhook: { ${SOURCES} handlers: { ${handlers} } } };`;
    {
      await using hooks = await startWebhooks(
        databaseUrl,
        module(`push: { handler: seen('push'), order: '/ref' }, 'payment_intent.succeeded': seen('sender')`),
      );
      for (const id of [...before, old.id]) {
        assert.equal(await hooks.replay(id), 204);
        const { by, got } = await handled(hooks, id);
        assert.equal(by, id === before[1] ? 'sender' : 'push');
        assert.equal(got.event, id === before[1] ? 'payment_intent.succeeded' : 'push');
        await hooks.until(id, 'done');
      }
      assert.deepEqual(await targetsOf(hooks, old.id), ['handler:push done']);
      const [job] = (await hooks.show(before[0] ?? '')).jobs as unknown as { history: readonly Got[] }[];
      assert.equal(job?.history.length, 2);
    }
    // And back.
    await using hooks = await startWebhooks(databaseUrl, module(`new_commit: seen('renamed')`));
    assert.equal(await hooks.replay(old.id), 204);
    assert.equal((await handled(hooks, old.id)).by, 'renamed');
  });
}

test('the handlers of the contract step aside for an event once the module has a handler for either name', async () => {
  const run = async (handlers: string, sources = SOURCES) => {
    const module = `${SEEN} export default { webhook: { ${sources} handlers: { ${handlers} } } };`;
    const hooks = await startWebhooks('sqlite::memory:', module);
    return hooks;
  };
  {
    // What the user has no handler for is not marked as done by a handler that the user has never seen.
    await using hooks = await run(`'payment_intent.succeeded': seen('sender')`);
    const charge = await fromStripe(hooks, { id: 'evt_4', type: 'charge.succeeded' });
    await hooks.until(charge, 'unhandled');
    const [entry] = hooks.logged('unhandled event');
    assert.deepEqual(
      [entry?.delivery, entry?.event, entry?.senderEvent],
      [charge, 'payment_received', 'charge.succeeded'],
    );
    // The other one stays.
    await hooks.until(await fromGithub(hooks, 'push', {}), 'done');
    assert.equal(hooks.logged('commit notification processed').length, 1);
  }
  {
    await using hooks = await run(`push: seen('push')`);
    await hooks.until(await hooks.post({ event: 'new_commit' }), 'unhandled');
    await hooks.until(await hooks.post({ event: 'payment_received' }), 'done');
  }
  // A name that no source renames is no other name of the event.
  await using hooks = await run(`push: seen('push')`, '');
  await hooks.until(await hooks.post({ event: 'new_commit' }), 'done');
  assert.equal(hooks.logged('commit notification processed').length, 1);
});

test('schedules and enqueued deliveries reach a handler under a name of a sender: they have the one name', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'names.db');
  await using hooks = await startWebhooks(
    `sqlite:${file}`,
    `${SEEN} export default { webhook: { ${SOURCES}
      schedules: { nightly: { cron: '* * * * * *', event: 'push' } },
      handlers: { push: seen('push'), 'payment_intent.succeeded': seen('sender') },
    } };`,
  );
  const db = new DatabaseSync(file, { timeout: 5_000 });
  const id = enqueue(db, { event: 'payment_intent.succeeded', data: 7 });
  db.close();
  const { by, got } = await handled(hooks, id);
  assert.deepEqual([by, got.event, got.senderEvent, got.data], ['sender', got.event, got.event, 7]);
  const scheduled = await waitFor('a delivery of the schedule', () =>
    hooks.logged('handled').find((entry) => (entry.got as Got).source === 'portico:schedule'),
  );
  assert.deepEqual([scheduled.by, (scheduled.got as Got).senderEvent], ['push', 'push']);
});

test('portico send takes either name, and the sender sends its own', async () => {
  await using hooks = await startWebhooks(
    'sqlite::memory:',
    `${SEEN} export default { webhook: { ${SOURCES} handlers: { push: seen('push'), payment_received: seen('renamed') } } };`,
  );
  const send = async (...args: readonly string[]) => {
    const url = `${hooks.service.urls.webhook}/webhook/${args[0]}`;
    const words = ['send', '--source', ...args, '--data', '{"n":1}', '--json', '--url', url];
    const { code, stdout, stderr } = await runCommand(words, { cwd: hooks.service.folder });
    assert.equal(code, 0, stderr);
    return { said: stderr, ...(await handled(hooks, (JSON.parse(stdout) as { delivery: string }).delivery)) };
  };
  const renamed = await send('github', '--event', 'new_commit');
  assert.deepEqual([renamed.by, renamed.got.senderEvent], ['push', 'push']);
  assert.match(renamed.said, /^Sent as push, the sender's name for new_commit\.$/m);
  const own = await send('github', '--event', 'push');
  assert.deepEqual([own.by, own.said], ['push', '']);
  const payment = await send('stripe', '--event', 'payment_received');
  assert.deepEqual([payment.by, payment.got.senderEvent], ['renamed', 'payment_intent.succeeded']);
  const charge = await send('stripe', '--event', 'charge.succeeded');
  assert.deepEqual([charge.by, charge.got.senderEvent, charge.said], ['renamed', 'charge.succeeded', '']);
});

test('a handler that nothing reaches stops the start, with the reason and what to do', async () => {
  await using folder = await temporaryFolder();
  const module = (sources: string, handlers: string) =>
    writeFile(
      join(folder.path, 'portico.config.mjs'),
      `export default { webhook: { sources: { ${sources} }, handlers: { ${handlers} } } };`,
    );
  const github = `github: { scheme: 'github', secrets: 'gh-secret' }`;
  await module(github, 'push() {}, new_commit() {}');
  const { code, stderr } = await runPortico(['serve'], { cwd: folder.path });
  assert.equal(code, 2);
  assert.equal(
    stderr
      .trim()
      .split('\n')
      .find((line) => line.includes('new_commit'))
      ?.trim(),
    '- portico.config.mjs: webhook.handlers.new_commit gets no event of a source: it is another name for "push" of ' +
      `webhook.sources.github, and handlers under the sender's own names win; remove either, or, if its events come ` +
      'from elsewhere, keep the names apart by webhook.sources.github.events: { "push": "push" }',
  );
  // Which does what it says.
  await module(
    `github: { scheme: 'github', secrets: 's', events: { push: 'push' } }`,
    'push() {}, new_commit() {}',
  );
  const kept = await runCommand(['migrate'], { cwd: folder.path });
  assert.equal(kept.code, 0, kept.stderr);
});
