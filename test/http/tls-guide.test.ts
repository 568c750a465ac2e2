import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runCommand } from '../support/run-command.ts';
import { startTestService } from '../support/service.ts';
import { runShown, settingsOf, shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type ProxyProgram, proxies } from './proxies/proxy.ts';

const CERTIFICATE = shownCommand('docs/TLS.md', /^openssl req/);
const SERVE = shownCommand('docs/TLS.md', /^TLS_CERT=.* npx portico$/);
const SERVE_ON_SOCKETS = shownCommand('docs/TLS.md', /^REST_PORT=unix:.* npx portico$/);
const ASK_SOCKET = shownCommand('docs/TLS.md', /^curl --unix-socket/);
const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/TLS.md'), 'utf8');

const nginx = proxies.find(({ name }) => name === 'nginx');

test('the certificate that the guide makes is served by every door, and its clients get in', async () => {
  await using folder = await temporaryFolder();
  const made = await runShown(CERTIFICATE, { cwd: folder.path });
  assert.equal(made.code, 0, made.stderr);
  const authority = join(folder.path, 'cert.pem');
  const env = {
    ...settingsOf(SERVE, { '/etc/portico': folder.path }),
    WEBHOOK_CLIENT_CA: authority,
  };
  await using service = await startTestService({ env });
  await service.listen();
  const curl = async (door: string, path: string, ...words: readonly string[]) => {
    const args = ['-s', '-w', '%{http_code} %{ssl_verify_result}', '-o', 'body', ...words];
    const { stdout } = await promisify(execFile)('curl', [...args, `${service.urls[door]}${path}`], {
      cwd: folder.path,
    });
    return stdout;
  };
  for (const [door, path] of [
    ['rest', '/users'],
    ['graphql', '/graphql?query=%7Bhello%7D'],
    ['management', '/actuator/health'],
  ] as const) {
    assert.match(service.urls[door] ?? '', /^https:/);
    assert.equal(await curl(door, path, '--cacert', 'cert.pem'), '200 0', door);
    await assert.rejects(curl(door, path), { code: 60 }, door);
  }
  // One whose clients need a certificate.
  const body = ['--cacert', 'cert.pem', '-d', '{"event":"x"}'];
  // The alert comes after the handshake of the client: it was writing, or reading, or neither yet.
  await assert.rejects(curl('webhook', '/webhook', ...body), ({ code }: { code: number }) =>
    [35, 55, 56].includes(code),
  );
  const own = ['--cert', 'cert.pem', '--key', 'key.pem'];
  assert.equal(await curl('webhook', '/webhook', ...body, ...own), '200 0');

  const program = `fetch('${service.urls.rest}/users').then(({ status }) => console.log(status))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], {
    env: { NODE_EXTRA_CA_CERTS: authority },
  });
  assert.equal(stdout, '200\n');
});

test('portico send trusts the certificate that the guide makes', async () => {
  await using folder = await temporaryFolder();
  await runShown(CERTIFICATE, { cwd: folder.path });
  const env = settingsOf(SERVE, { '/etc/portico': folder.path });
  await using service = await startTestService({ env });
  await service.listen();
  const PORT = new URL(service.urls.webhook ?? '').port;
  const sent = await runCommand(['send', '--event', 'x'], { cwd: folder.path, env: { ...env, PORT } });
  assert.match(sent.stdout, /^200 OK/, sent.stderr);
});

/** A service on the sockets of the guide, in a folder of its own. */
async function startOnSockets() {
  const folder = await temporaryFolder();
  const names = { '/run/portico': folder.path };
  const env = { ...settingsOf(SERVE_ON_SOCKETS, names), INTERFACES: 'rest,management' };
  const service = await startTestService({ env });
  await service.listen();
  return {
    folder: folder.path,
    names,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test('the doors on sockets answer what the guide asks', async () => {
  await using service = await startOnSockets();
  const { stdout, stderr } = await runShown(ASK_SOCKET, { cwd: service.folder, names: service.names });
  assert.match(stdout, /^{"status":"success","data":\[/, stderr);
});

test('nginx finds the socket by the upstream of the guide', { skip: nginx?.missing ?? false }, async () => {
  await using service = await startOnSockets();
  const [, upstream = ''] = /```nginx\n(.*?)```/s.exec(GUIDE) ?? [];
  const server = `server {
    listen 80;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / { proxy_pass http://portico_rest; }
  }`;
  const config = `${upstream.replace('/run/portico', service.folder)}\n${server}`;
  await using proxy = await (nginx as ProxyProgram).start([], () => config);
  assert.equal((await fetch(`${proxy.url}/users`)).status, 200);
});
