import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHILD_ENVIRONMENT, MAIN } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const skip =
  spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' }).status === 0
    ? false
    : 'needs script of util-linux';

const FREE = {
  GRAPHQL_PORT: '0',
  REST_PORT: '0',
  MANAGEMENT_PORT: '0',
  PORT: '0',
  SHUTDOWN_PRE_STOP_DELAY: '0',
};

/** Runs `portico` on a terminal of its own until it ends; `onText` gets the process and what it has shown so far. */
async function onTerminal(
  cwd: string,
  command: string,
  env: Readonly<Record<string, string>> = {},
  onText: (interrupt: () => void, text: string) => void = () => {},
): Promise<string> {
  const child = spawn('script', ['-qec', `'${process.execPath}' '${MAIN}' ${command}`, '/dev/null'], {
    cwd,
    env: { ...CHILD_ENVIRONMENT, TERM: 'xterm', ...FREE, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    // Ctrl+C, as a keyboard sends it.
    onText(() => child.stdin.write('\x03'), text);
  });
  await once(child, 'close');
  return text.replaceAll('\r\n', '\n');
}

/** Starts the service and stops it by Ctrl+C once its banner is there, or another text behind that. */
function serveOnTerminal(
  cwd: string,
  command: string,
  env: Readonly<Record<string, string>> = {},
  until = 'Stop:',
): Promise<string> {
  let interrupted = false;
  return onTerminal(cwd, command, env, (interrupt, text) => {
    if (interrupted || !text.includes(until)) return;
    interrupted = true;
    interrupt();
  });
}

const ESCAPE = '\x1b';

test('on a terminal the banner stands alone, then each entry has a line', { skip }, async () => {
  await using folder = await temporaryFolder();
  const text = await serveOnTerminal(folder.path, 'serve --host 0.0.0.0', { NO_COLOR: '1' }, 'reachable');
  const [before = '', after = ''] = text.split('  Stop:      Ctrl+C\n\n');
  assert.match(before, /^\s*Portico \S+ is ready \(\d+ ms\)\n\n/);
  assert.match(before, /^ {2}REST {7}http:\/\/localhost:\d+\/users$/m);
  assert.doesNotMatch(before, /door listens|0\.0\.0\.0/);
  const entries = after.split('\n').filter((line) => line !== '' && line !== '^C');
  const [warning = '', ...rest] = entries.map((line) => line.replace(/^(?:\^C)?\[[\d:.]{12}\] /, ''));
  assert.match(
    warning,
    /^WARN: doors reachable without credentials.* \{"host":"0\.0\.0\.0","doors":\[.*\],"secure":\{.*\}\}$/,
  );
  assert.deepEqual(rest, ['INFO: stopping {"signal":"SIGINT"}', 'INFO: stopped']);
});

test('NO_COLOR and FORCE_COLOR hold for banner, log, help and tables', { skip }, async () => {
  await using folder = await temporaryFolder();
  for (const [env, coloured] of [
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ FORCE_COLOR: '0' }, false],
  ] as const) {
    const service = await serveOnTerminal(folder.path, 'serve', env);
    assert.equal(service.includes(`${ESCAPE}[1mPortico`), coloured, 'banner');
    assert.equal(service.includes(`${ESCAPE}[32mINFO`), coloured, 'log');
    const help = await onTerminal(folder.path, 'help send', env);
    assert.equal(help.includes(`${ESCAPE}[1mUsage: portico send`), coloured, 'help');
    if (!coloured) assert.ok(!(service + help).includes(ESCAPE));
  }
  const piped = (env: Readonly<Record<string, string>>) =>
    spawnSync(process.execPath, [MAIN, 'help'], { cwd: folder.path, encoding: 'utf8', env }).stdout;
  assert.ok(!piped({}).includes(ESCAPE));
  assert.ok(piped({ FORCE_COLOR: '1' }).includes(ESCAPE));
});

/** Clears the screen, colours what follows by C0 and by C1, turns the direction, hides, overwrites. */
const HOSTILE = '\x1b[2J\x1b[31mx\x9b31m\x9d0;title\x9c\u202eevil\u2066\u200b\u2028\r\x07\x7f';
const ESCAPED = /\\u(?:001b|009b|202e)/;

/** How progress and questions move the cursor. */
const OWN = new RegExp(`\\r${ESCAPE}\\[K|${ESCAPE}\\[(?:\\d+G|0J)`, 'g');

/** Nothing may stand on the terminal but lines, tabs and what people can see. */
function assertHarmless(text: string, what: string): void {
  // A line of progress begins anew and goes away, and a question places the cursor.
  const shown = text.replaceAll(OWN, '');
  assert.doesNotMatch(
    shown,
    /(?![\n\t]|\r\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u,
    `${what}: ${JSON.stringify(shown)}`,
  );
}

/** A server whose every word is hostile, on whatever it is asked. */
async function hostileServer() {
  const body = JSON.stringify({ status: HOSTILE, text: HOSTILE }) + HOSTILE;
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => {
        const line = Buffer.from(
          'HTTP/1.1 500 bad \x9b31m\r\nx-delivery-id: \x9b31m\r\nconnection: close\r\n',
          'latin1',
        );
        socket.end(
          Buffer.concat([line, Buffer.from(`content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)]),
        );
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => server.close() };
}

/** A configuration module whose handlers log what they get, and fail with it. */
const MODULE = `const HOSTILE = ${JSON.stringify(HOSTILE)};
export default {
  webhook: {
    attempts: 1,
    headers: ['x-kept'],
    handlers: {
      bad(delivery, { log }) {
        log.warn({ [HOSTILE]: HOSTILE, data: delivery.data }, HOSTILE);
        throw Object.assign(new Error(HOSTILE), { code: HOSTILE });
      },
    },
  },
};`;

test('no text from outside is obeyed by the terminal, whichever command shows it', { skip }, async () => {
  await using service = await startTestService({ database: 'file', module: MODULE });
  const { folder } = service;
  await service.listen();
  const user = { name: HOSTILE, email: `${HOSTILE}@example.com` };
  const created = await fetch(`${service.urls.rest}/users`, { method: 'POST', body: JSON.stringify(user) });
  assert.equal(created.status, 200);
  const headers = { 'x-kept': '\x9b31m', 'content-type': 'text/\x9b31m' };
  for (const event of ['bad', HOSTILE]) {
    const body = JSON.stringify({ event, data: HOSTILE });
    assert.equal(
      (await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', headers, body })).status,
      200,
    );
  }
  await waitFor('the failure', () => service.log.entries.some(({ msg }) => /dead/.test(String(msg))));
  await service.current.stop();
  const listed = await onTerminal(folder, 'deliveries list --json', { NO_COLOR: '1' });
  const ids = [...listed.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
  assert.equal(ids.length, 2);

  using server = await hostileServer();
  const lines = [user, { name: '', email: HOSTILE }, { [HOSTILE]: 1 }].map((each) => JSON.stringify(each));
  await writeFile(join(folder, 'users.ndjson'), `${lines.join('\n')}\n${HOSTILE}\n`);
  await writeFile(join(folder, 'bad.json'), JSON.stringify({ [HOSTILE]: 1, rest: { port: HOSTILE } }));
  await writeFile(join(folder, 'bad.mjs'), `throw new Error(${JSON.stringify(HOSTILE)});`);
  const word = `'${HOSTILE}'`;
  for (const [command, shows] of [
    ['users list', true],
    ['users list --json', true],
    ['users export', true],
    ['users export --format csv', true],
    ['users import users.ndjson', false],
    ['deliveries list', true],
    ['deliveries list --json', true],
    ...ids.flatMap((id) => [
      [`deliveries show ${id}`, true] as const,
      [`deliveries show ${id} --json`, true] as const,
      [`deliveries show ${id} --raw`, true] as const,
    ]),
    [`deliveries show ${word}`, true],
    [`deliveries replay ${word}`, true],
    [`deliveries list --event ${word} --limit 1`, true],
    [`tokens revoke ${word}`, true],
    [`tokens create ${word} --scopes ${word}`, false],
    [word, true],
    [`help ${word}`, true],
    [`--rest-port=${word}`, false],
    [`init ${word} --yes`, true],
    [`backup ${word}`, true],
    [`restore ${word} --yes`, true],
    [`restore ${word}`, true],
    ['serve --config bad.json', true],
    ['serve --config bad.mjs', true],
    [`send --url ${server.url} --event ${word} --data 1`, true],
    [`send --url ${server.url} --event x --data 1 --json`, true],
    [`health --url ${server.url}`, false],
  ] as const) {
    let asked = false;
    const text = await onTerminal(folder, command, { NO_COLOR: '1' }, (interrupt, shown) => {
      if (!asked && shown.includes('[y/N]')) interrupt();
      asked ||= shown.includes('[y/N]');
    });
    assertHarmless(text, command);
    if (shows) assert.match(text, ESCAPED, command);
  }
});

test('nor by the banner and the log of a service', { skip }, async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.mjs'), MODULE);
  const socket = join(folder.path, 'a\u202eevil.sock');
  let begun = false;
  let interrupted = false;
  const text = await onTerminal(
    folder.path,
    'serve',
    { NO_COLOR: '1', REST_PORT: `unix:${socket}` },
    (interrupt, shown) => {
      const [, url] = /Webhook +(http\S+)/.exec(shown) ?? [];
      if (!begun && url !== undefined && shown.includes('Stop:')) {
        begun = true;
        fetch(url, { method: 'POST', body: JSON.stringify({ event: 'bad', data: HOSTILE }) }).catch(() => {});
        fetch(url, { method: 'POST', body: JSON.stringify({ event: HOSTILE }) }).catch(() => {});
      }
      if (interrupted || !/dead/.test(shown) || !/unhandled/.test(shown)) return;
      interrupted = true;
      interrupt();
    },
  );
  assertHarmless(text, 'serve');
  assert.match(text, /^ {2}REST +unix:.*a\\u202eevil\.sock$/m);
  assert.match(text, /^\[[\d:.]+\] WARN: .*\\u001b\[2J.*\\u009b31m/m);
  assert.match(text, /^ {4}Error: \\u001b\[2J/m);
});
