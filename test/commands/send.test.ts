import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { type CommandResult, runCommand } from '../support/run-command.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';

const WHSEC = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER_WHSEC = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const MODULE = `
export default {
  webhook: {
    sources: {
      standard: { scheme: 'standard', secrets: '${WHSEC}' },
      svix: { scheme: 'standard', secrets: '${WHSEC}', headerPrefix: 'svix' },
      github: { scheme: 'github', secrets: 'github-secret' },
      stripe: { scheme: 'stripe', secrets: 'stripe-secret' },
      slack: { scheme: 'slack', secrets: 'slack-secret' },
      hmac: { scheme: 'hmac', secrets: 'hmac-secret', header: 'x-plain' },
      shop: {
        scheme: 'hmac', secrets: 'shop-secret', header: 'x-shop', algorithm: 'sha512', encoding: 'base64',
        prefix: 'v1=', timestampHeader: 'x-time', template: '{timestamp}.{header:x-request-id}.{body}',
        event: { header: 'x-topic' }, data: '', dedup: { pointer: '/meta/id' },
      },
      token: { scheme: 'token', secrets: 'token-secret', header: 'x-token' },
    },
  },
};
`;

interface Stored {
  readonly seq: number;
  readonly source: string;
  readonly event: string | null;
  readonly body: unknown;
}

describe('send', () => {
  let folder: TemporaryFolder;
  let service: PorticoProcess;
  let database: Database;
  let port: string;
  before(async () => {
    folder = await temporaryFolder();
    await writeFile(join(folder.path, 'portico.config.ts'), MODULE);
    service = startPortico({ cwd: folder.path, env: { WEBHOOK_SECRET: 'door-secret,old-secret' } });
    await service.ready();
    port = new URL(service.urls.webhook ?? '').port;
    database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  });
  after(async () => {
    await database[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const send = (args: readonly string[], input = ''): Promise<CommandResult> =>
    runCommand(['send', ...args], {
      cwd: folder.path,
      env: { PORT: port, WEBHOOK_SECRET: 'door-secret' },
      input,
    });
  /** What the service stored last. */
  const newest = async (): Promise<Stored> => {
    const { items } = await database.deliveries.list({}, 1);
    const found = await database.deliveries.find(items[0]?.id ?? '');
    assert.ok(found);
    const { seq, source, event, body } = found;
    return { seq, source, event, body: JSON.parse(Buffer.from(body).toString()) };
  };
  const accepted: CommandResult = { code: 0, stdout: '200 OK\nWebhook received\n', stderr: '' };
  const assertAccepted = ({ stderr, ...result }: CommandResult, args: readonly string[]) => {
    assert.deepEqual({ ...result, stderr: '' }, accepted, `${args.join(' ')}: ${stderr}`);
  };

  for (const [source, more, body] of [
    ['standard', [], { type: 'paid', data: { n: 7 } }],
    ['svix', [], { type: 'paid', data: { n: 7 } }],
    ['github', [], { n: 7 }],
    ['stripe', [], { id: 'id-1', type: 'paid', data: { n: 7 } }],
    ['slack', [], { event_id: 'id-1', event: { n: 7, type: 'paid' } }],
    ['hmac', [], { event: 'paid', data: { n: 7 } }],
    ['shop', ['--header', 'X-Request-Id: 9'], { n: 7, meta: { id: 'id-1' } }],
    ['token', [], { event: 'paid', data: { n: 7 } }],
  ] as const) {
    test(`as the source ${source}: accepted and stored under its name; with a wrong secret refused`, async () => {
      const args = ['--source', source, ...more, '--event', 'paid', '--data', '{"n":7}', '--id', 'id-1'];
      assertAccepted(await send(args), args);
      const stored = await newest();
      assert.deepEqual([stored.source, stored.event, stored.body], [source, 'paid', body]);

      const wrong = source === 'standard' || source === 'svix' ? OTHER_WHSEC : 'wrong-secret';
      const refused = await send([...args, '--secret', wrong]);
      assert.deepEqual([refused.code, refused.stdout], [1, '401 Unauthorized\nUnauthorized\n']);
      assert.match(refused.stderr, /do both sides have the same secret/);
      assert.equal((await newest()).seq, stored.seq);

      // The same id again is known, and still a success.
      assertAccepted(await send(args), args);
      assert.equal((await newest()).seq, stored.seq);
    });
  }

  test('by scheme, secret and URL alone', async () => {
    const file = join(folder.path, 'secret.txt');
    await writeFile(file, 'slack-secret\n');
    for (const [source, args] of [
      ['standard', ['--scheme', 'standard', '--secret', WHSEC]],
      ['github', ['--scheme', 'github', '--secret', 'github-secret']],
      ['stripe', ['--scheme', 'stripe', '--secret', 'stripe-secret']],
      ['slack', ['--scheme', 'slack', '--secret-file', 'secret.txt']],
      ['hmac', ['--scheme', 'hmac', '--secret', 'hmac-secret', '--signature-header', 'X-Plain']],
      ['token', ['--scheme', 'token', '--secret', 'token-secret', '--signature-header', 'x-token']],
    ] as const) {
      const all = [...args, '--url', `http://127.0.0.1:${port}/webhook/${source}`, '--event', `by-${source}`];
      assertAccepted(await send(all), all);
      assert.equal((await newest()).event, `by-${source}`);
    }
  });

  test('to /webhook with the token of the configuration, another one, or none', async () => {
    assertAccepted(await send([]), []);
    const { source, event, body } = await newest();
    assert.deepEqual([source, event, body], ['', 'test', { event: 'test', data: {} }]);
    assertAccepted(await send(['--secret', 'old-secret', '--event', 'rotated']), []);
    for (const args of [
      ['--secret', 'wrong'],
      ['--scheme', 'none'],
    ]) {
      const refused = await send(args);
      assert.deepEqual([refused.code, refused.stdout], [1, '401 Unauthorized\nUnauthorized\n']);
    }
    assert.equal((await newest()).event, 'rotated');
    // An address without a path is that of a door.
    const origin = `http://127.0.0.1:${port}`;
    assertAccepted(await send(['--url', origin]), []);
    assertAccepted(await send(['--url', origin, '--source', 'github']), []);
  });

  test('data and body from a file and from standard input', async () => {
    await writeFile(join(folder.path, 'data.json'), '[1,2]');
    assertAccepted(await send(['--data', '@data.json']), []);
    assert.deepEqual((await newest()).body, { event: 'test', data: [1, 2] });
    assertAccepted(await send(['--data', '-'], '"text"'), []);
    assert.deepEqual((await newest()).body, { event: 'test', data: 'text' });
    assertAccepted(await send(['--source', 'github', '--body', '-'], '{"a": 12345678901234567890}'), []);
    const [last] = (await database.deliveries.list({}, 1)).items;
    const found = await database.deliveries.find(last?.id ?? '');
    assert.equal(Buffer.from(found?.body ?? []).toString(), '{"a": 12345678901234567890}');
  });

  test('many, each an id of its own, or all the same one', async () => {
    const { seq } = await newest();
    const many = await send(['--count', '30']);
    assert.deepEqual([many.code, many.stdout], [0, '200: 30 deliveries\n']);
    assert.equal((await newest()).seq, seq + 30);
    const json = await send(['--count', '5', '--id', 'same', '--json']);
    assert.deepEqual(JSON.parse(json.stdout), {
      url: `http://127.0.0.1:${port}/webhook`,
      statuses: { 200: 5 },
    });
    assert.equal((await newest()).seq, seq + 31);
  });

  test('--json tells what was answered', async () => {
    const { code, stdout, stderr } = await send(['--json', '--id', 'one', '--secret', 'wrong']);
    assert.equal(code, 1);
    const { took, ...reply } = JSON.parse(stdout);
    assert.ok(took >= 0);
    assert.deepEqual(reply, {
      url: `http://127.0.0.1:${port}/webhook`,
      id: 'one',
      status: 401,
      body: 'Unauthorized',
    });
    assert.doesNotMatch(stdout + stderr, /wrong/);
  });

  test('what to do next is said, and can be done', async () => {
    const { stderr } = await send(['--id', 'next-1']);
    const [, id = ''] = /^Next: portico deliveries show ([0-9a-f-]{36})$/m.exec(stderr) ?? [];
    const show = (name: string) => runCommand(['deliveries', 'show', name], { cwd: folder.path });
    assert.ok((await show(id)).stdout.startsWith(`Delivery  ${id}\n`), stderr);
    assert.ok((await show('next-1')).stdout.startsWith(`Delivery  ${id}\n`));
    assert.equal(JSON.parse((await send(['--id', 'next-1', '--json'])).stdout).delivery, id);
    assert.doesNotMatch((await send(['--secret', 'wrong'])).stderr, /Next:/);
  });

  test('an unknown path is explained', async () => {
    const { code, stderr } = await send(['--url', `http://127.0.0.1:${port}/webhook/nobody`]);
    assert.equal(code, 1);
    assert.match(stderr, /The receiver has no such path/);
  });

  test('where nothing listens it says what to do', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const address = closed.address();
    assert.ok(typeof address === 'object' && address !== null);
    closed.close();
    await once(closed, 'close');
    const { code, stdout, stderr } = await send(['--webhook-port', String(address.port)]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(
      stderr,
      `portico: Nothing listens at http://127.0.0.1:${address.port}; start it with "portico serve", or give its URL with --url.\n`,
    );
  });

  test('wrong usage is exit code 2, and no message shows a secret', async () => {
    for (const [args, message] of [
      [['--schem', 'github'], 'did you mean --scheme?'],
      [['--scheme', 'gihub'], 'did you mean github?'],
      [['--source', 'githbu'], '--source names no sender of webhook.sources; did you mean github?'],
      [['--source', 'x'], 'there are standard, svix, github'],
      [['--scheme', 'github'], '--scheme github needs --secret or --secret-file'],
      [['--scheme', 'github', '--secret', 'canary'], 'a receiver with --source or --url'],
      [['--scheme', 'hmac', '--secret', 'canary', '--url', 'http://h'], 'needs --signature-header'],
      [['--scheme', 'standard', '--secret', 'canary', '--url', 'http://h'], 'must begin with whsec_'],
      [['--secret', 'canary', '--secret-file', 'x'], 'exclude each other'],
      [['--secret-file', 'missing'], 'cannot be read (ENOENT)'],
      [['--secret', 'my', 'canary'], 'put a value with spaces in quotes'],
      [['--data', '{'], '--data is no JSON'],
      [['--data', '@missing'], 'ENOENT'],
      [['--data', '1', '--body', '2'], 'exclude each other'],
      [['--source', 'slack', '--data', '1'], '--data: the data must be an object'],
      [['--source', 'shop'], 'A signed header is missing'],
      [['--source', 'standard', '--id', 'a.b'], 'other than "."'],
      [['--source', 'github', '--event', 'a\nb'], 'Invalid character'],
      [['--header', 'x'], '--header must be like'],
      [['--url', 'ftp://h'], '--url must be an http or https URL'],
      [['--webhook-port', '0'], 'give its URL with --url'],
      [['--count', '0'], '--count must be a whole number above 0'],
    ] as const) {
      const { code, stdout, stderr } = await send(args);
      assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`);
      assert.ok(stderr.startsWith('portico: ') && stderr.includes(message), stderr);
      assert.doesNotMatch(stderr, /canary/);
    }
  });
});
