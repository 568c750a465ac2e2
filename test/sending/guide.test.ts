import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { backoff } from '../../src/inbox/dispatch/target.ts';
import { readSending } from '../../src/sending/config.ts';
import { freePort } from '../support/free-port.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestService } from '../support/service.ts';
import { runShown, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const GUIDE = readFileSync(join(ROOT, 'docs/SENDING.md'), 'utf8');
const COMMANDS = shownCommands('docs/SENDING.md');
const [MODULE = '', RECEIVER = ''] = Array.from(GUIDE.matchAll(/```ts\n(.*?)```/gs), ([, text = '']) => text);

/** What differs from run to run: ids, secrets, tokens, addresses of the portal, times and durations. */
const CHANGING =
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|ep_[\da-f]{24}|whsec_[\w+/=]+|v1\.[\w-]+\.[\w-]+|\d{4}-\d\d-\d\dT[\d:.]+Z|http:\/\/127\.0\.0\.1:(?!9000)\d+|(?<="durationMs":)[\d.]+/g;

/** The text with a name for each kind of them. */
const steady = (text: string) =>
  text.replaceAll(
    CHANGING,
    (found) => `<${/^[a-z]+/.exec(found)?.[0] ?? (found.includes('T') ? 'time' : 'id')}>`,
  );

test('every command of the guide prints what it shows, and the receiver verifies what it gets', async () => {
  const port = String(await freePort());
  await using folder = await temporaryFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  const file = join(folder.path, 'receiver.mts');
  await writeFile(file, RECEIVER.replace('9000', port));
  const module = MODULE.replace("'portico'", JSON.stringify(join(ROOT, 'src/index.ts'))).replace('3001', '0');
  await using service = await startTestService({ module, listens: true });
  const { urls } = service;
  await using cleanup = new AsyncDisposableStack();
  let received = '';
  /** What the guide copies from an earlier output is copied here too. */
  const copied = new Map<string, string>();
  const printed: string[] = [];
  for (const shown of COMMANDS) {
    const command = shown.command.replaceAll(CHANGING, (found) => copied.get(found) ?? found);
    const run = async () => {
      const { code, stdout, stderr } = await runShown(
        { ...shown, command: command.replaceAll('127.0.0.1:9000', `127.0.0.1:${port}`) },
        { cwd: folder.path, urls },
      );
      assert.equal(code, 0, stderr);
      return stdout.trimEnd().replaceAll(`127.0.0.1:${port}`, '127.0.0.1:9000');
    };
    let said = await run();
    // An attempt may not have ended yet.
    if (!/ -(?:d|X|-data-binary) /.test(command)) {
      await waitFor(command, async () => {
        said = await run();
        return steady(said) === steady(shown.output ?? '');
      });
    }
    printed.push(said);
    const actual = said.match(CHANGING) ?? [];
    for (const [i, found] of (shown.output?.match(CHANGING) ?? []).entries())
      copied.set(found, actual[i] ?? '');
    if (printed.length > 1) continue;
    const child = spawn(process.execPath, [file], {
      env: { ...process.env, SECRET: JSON.parse(said).secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanup.defer(async () => {
      const closed = once(child, 'close');
      child.kill();
      await closed;
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
    await waitFor('the receiver', () =>
      fetch(`http://127.0.0.1:${port}`).then(
        () => true,
        () => false,
      ),
    );
  }
  assert.equal(steady(printed.join('\n')), steady(COMMANDS.map(({ output }) => output).join('\n')));
  await waitFor('the first event', () => received.includes("type: 'invoice.paid'"));
});

test('the table of waits is that of the defaults', () => {
  const settings = readSending({ value: true, path: 'webhook.sending' }, []);
  assert.ok(settings);
  const { backoff: base, maxBackoff: cap, attempts } = settings.limits;
  const rows = Array.from(GUIDE.matchAll(/^\| (\d+) \| (.+) \| (.+) \| (.+) \|$/gm), ([, ...cells]) => cells);
  assert.equal(rows.at(-1)?.[0], String(attempts));
  const UNITS = { h: 3_600, min: 60, s: 1 } as const;
  const seconds = (text = '') =>
    text.split(/(?<=[a-z]) /).reduce((sum, part) => {
      const [number = '', unit = 's'] = part.split(' ');
      return sum + Number(number) * UNITS[unit as keyof typeof UNITS];
    }, 0);
  for (const [attempt, ...shown] of rows) {
    const longest = (n: number) => (backoff(n, { base, cap }, 1 - Number.EPSILON) + 1) / 1_000;
    const waits = Array.from({ length: Number(attempt) - 1 }, (_, i) => longest(i + 1));
    const total = waits.reduce((sum, each) => sum + each, 0);
    for (const [i, expected] of [waits.at(-1) ?? 0, total / 2, total].entries()) {
      const told = seconds(shown[i]);
      // The guide rounds to whole minutes above an hour.
      const unit = expected > 3_600 ? 60 : 1;
      assert.ok(Math.abs(told - expected) < unit, `${attempt}: ${shown[i]}, ${expected} s`);
    }
  }
});

test('the handler of the guide sends an e-mail for a disabled endpoint, again if the mail service fails', async (t) => {
  await using receiver = await startReceiver({
    '/gone': (response) => response.writeHead(410).end(),
    '/mail': (response, attempt) => response.writeHead(attempt === 1 ? 503 : 202).end(),
  });
  const [, shown = ''] = /```ts\n([^`]*?\bMAIL_API\b.*?)```/s.exec(GUIDE) ?? [];
  const module = shown
    .replace("'portico'", JSON.stringify(join(ROOT, 'src/index.ts')))
    .replace('sending: true', 'sending: { allowPrivate: true }');
  process.env.MAIL_API = `${receiver.url}/mail`;
  process.env.MAIL_TOKEN = 'of-the-mail-service';
  t.after(() => {
    delete process.env.MAIL_API;
    delete process.env.MAIL_TOKEN;
  });
  await using service = await startTestService({ module, env: { WEBHOOK_BACKOFF: '20' }, listens: true });
  const post = (path: string, body: object) =>
    fetch(`${service.urls.rest}${path}`, { method: 'POST', body: JSON.stringify(body) });
  await post('/webhooks/tenants/acme/endpoints', { url: `${receiver.url}/gone` });
  await post('/events', { tenant: 'acme', type: 'a', data: 1 });
  const [first, second] = await waitFor('the e-mail', () => {
    const sent = receiver.at('/mail');
    return sent.length === 2 && sent;
  });
  assert.equal(second?.headers.authorization, 'Bearer of-the-mail-service');
  assert.equal(second?.headers['idempotency-key'], first?.headers['idempotency-key']);
  assert.deepEqual(JSON.parse(String(second?.body)), {
    to: 'ops@example.com',
    subject: `acme: ${receiver.url}/gone is disabled (gone)`,
  });
});

test('the notice of a disabled endpoint reaches the handler, and the named meters are there', async () => {
  await using receiver = await startReceiver({ '/gone': (response) => response.writeHead(410).end() });
  await using service = await startTestService({
    module: `export default { webhook: { sending: { allowPrivate: true }, handlers: {
      'portico.endpoint_disabled': ({ data }) =>
        fetch('${receiver.url}/notice', { method: 'POST', body: JSON.stringify(data) }),
    } } };`,
    env: { MANAGEMENT_INCLUDE: '*' },
    listens: true,
  });
  const { rest, management } = service.urls;
  const post = async (path: string, body: object) => {
    const reply = await fetch(`${rest}${path}`, { method: 'POST', body: JSON.stringify(body) });
    return (await reply.json()) as { readonly id: string };
  };
  const { id } = await post('/webhooks/tenants/acme/endpoints', { url: `${receiver.url}/gone` });
  await post('/events', { tenant: 'acme', type: 'a', data: 1 });
  const notice = await waitFor('the notice', () => receiver.at('/notice')[0]);
  const { failingSince, ...told } = JSON.parse(notice.body.toString());
  assert.deepEqual(told, { tenant: 'acme', endpoint: id, url: `${receiver.url}/gone`, reason: 'gone' });
  assert.equal(failingSince, null);
  const meters = await (await fetch(`${management}/actuator/prometheus`)).text();
  for (const named of [
    /^sending_events_total\{.*result="stored".*\} 1$/m,
    /^sending_circuits_open(?:\{.*\})? 0$/m,
    /^webhook_attempts_total\{.*target="endpoints".*\} /m,
  ])
    assert.match(meters, named);
});
