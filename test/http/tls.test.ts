import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { connect as connectPlainly } from 'node:net';
import { test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { makeCertificate, type TestCertificate, writeCertificate } from '../support/certificates.ts';
import { rawHttp } from '../support/connections.ts';
import { almostPlain } from '../support/odd-requests.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startTransportTwins } from '../support/transport-twins.ts';
import { waitFor } from '../support/wait-for.ts';
import { addContents, configModule, doorSamples, env as sampleEnv } from './samples.ts';

/** A service whose doors speak TLS with a new certificate of a new authority. */
async function start(env: Readonly<Record<string, string>> = {}) {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(await temporaryFolder());
  const authority = makeCertificate('authority');
  const tls = await writeCertificate(path, makeCertificate('portico', authority));
  const service = cleanup.use(await startTestService({ env: { ...tls, ...env } }));
  await service.listen();
  const all = cleanup.move();
  return { service, authority, files: tls, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Resolves to the status and the text of a reply. */
async function get(url: string, options: ConnectionOptions): Promise<readonly [number | undefined, string]> {
  const call = request(url, { agent: false, ...options }).end();
  const [response] = await once(call, 'response');
  let text = '';
  for await (const chunk of response) text += chunk;
  return [response.statusCode, text];
}

async function handshake(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ...options });
  await once(socket, 'secureConnect');
  return socket;
}

const trusting = ({ cert }: TestCertificate): ConnectionOptions => ({ ca: cert });

test('the doors speak TLS 1.2 and 1.3 with the configured certificate, and nothing else', async () => {
  await using at = await start();
  const { urls } = at.service;
  for (const url of Object.values(urls)) assert.match(url, /^https:/);
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const only = { ...trusting(at.authority), minVersion: version, maxVersion: version };
    assert.equal((await get(`${urls.management}/livez`, only))[0], 200, version);
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const;
  await assert.rejects(handshake(urls.rest ?? '', { ...trusting(at.authority), ...old }));
  await assert.rejects(get(`${urls.rest}/users`, {}), 'nobody else trusts the authority');
  const plain = await rawHttp(urls.rest ?? '', ['GET /users HTTP/1.1\r\nHost: x\r\n\r\n']);
  assert.equal(plain.status, undefined);
  const [, links] = await get(`${urls.management}/actuator`, trusting(at.authority));
  assert.match(links, /"href":"https:/);
});

test('plain requests over TLS take the fast path, with the replies of Fastify', async () => {
  await using folder = await temporaryFolder();
  const tls = await writeCertificate(folder.path, makeCertificate('localhost'));
  await using twins = await startTransportTwins({ env: { ...sampleEnv, ...tls }, module: configModule() });
  await addContents(twins);
  for (const sample of doorSamples.filter(({ slow, hasRows }) => slow !== true && hasRows !== true)) {
    const [plain] = almostPlain(sample.requests);
    assert.ok(plain);
    const bytes = Buffer.concat([Buffer.from(plain.head), plain.body]);
    const before = twins.slowly;
    const { fast, fastify } = await twins.ask(sample.door, [bytes], { volatile: true });
    assert.match(fast, sample.success ?? /^HTTP\/1\.1 200 /, sample.what);
    assert.equal(fast, fastify, sample.what);
    assert.equal(twins.slowly, before, sample.what);
  }
});

test('new files are used without a restart; files that do not work change nothing and are logged', async () => {
  await using at = await start();
  const url = at.service.urls.rest ?? '';
  const shown = async () => {
    const socket = await handshake(url, { rejectUnauthorized: false });
    const { fingerprint256 } = socket.getPeerX509Certificate() ?? {};
    socket.destroy();
    return fingerprint256;
  };
  const logged = (msg: string) => at.service.log.entries.filter((entry) => entry.msg === msg);
  const first = await shown();
  const kept = await handshake(url, { rejectUnauthorized: false });

  await writeFile(at.files.TLS_CERT, 'no certificate');
  await waitFor('the log', () => logged('changed TLS files unusable, old ones kept').length === 1);
  assert.equal(await shown(), first);

  const second = makeCertificate('second');
  await writeFile(at.files.TLS_CERT, second.cert);
  await writeFile(at.files.TLS_KEY, second.key);
  await waitFor('the reload', () => logged('TLS certificate reloaded').length === 1);
  assert.notEqual(await shown(), first);

  kept.write('GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n');
  const [reply] = await once(kept, 'data');
  assert.match(
    String(reply),
    /^HTTP\/1\.1 200 /,
    'a connection goes on with the certificate that it began with',
  );
  kept.destroy();
});

test('a door with an authority for clients takes those with its certificate only', async () => {
  await using folder = await temporaryFolder();
  const clients = makeCertificate('clients');
  const ca = `${folder.path}/clients.pem`;
  await writeFile(ca, clients.cert);
  await using at = await start({ MANAGEMENT_CLIENT_CA: ca });
  const { management, rest } = at.service.urls;
  const known = makeCertificate('prometheus', clients);
  const stranger = makeCertificate('stranger', makeCertificate('clients'));
  const as = ({ cert, key }: TestCertificate) => ({ ...trusting(at.authority), cert, key });
  assert.equal((await get(`${management}/actuator/health`, as(known)))[0], 200);
  await assert.rejects(get(`${management}/actuator/health`, trusting(at.authority)));
  await assert.rejects(get(`${management}/actuator/health`, as(stranger)));
  await assert.rejects(get(`${management}/livez`, trusting(at.authority)), 'probes too');
  assert.equal((await get(`${rest}/users`, trusting(at.authority)))[0], 200, 'another door asks nobody');
});

test('another authority for clients is used without a restart, with the same certificate of the door', async () => {
  await using folder = await temporaryFolder();
  const [first, ...later] = Array.from({ length: 3 }, () => makeCertificate('clients'));
  const ca = `${folder.path}/clients.pem`;
  await writeFile(ca, first?.cert ?? '');
  await using at = await start({ MANAGEMENT_CLIENT_CA: ca });
  const url = `${at.service.urls.management}/livez`;
  const isTaken = ({ cert, key }: TestCertificate) =>
    get(url, { ...trusting(at.authority), cert, key }).then(
      ([status]) => status === 200,
      () => false,
    );
  let before = makeCertificate('client', first);
  // The first change may come before the files are watched: they are read once more then.
  for (const authority of later) {
    const next = makeCertificate('client', authority);
    assert.deepEqual([await isTaken(before), await isTaken(next)], [true, false]);
    await writeFile(ca, authority.cert);
    await waitFor('the new authority', () => isTaken(next));
    assert.equal(await isTaken(before), false, 'the old one counts no more');
    before = next;
  }
});

test('WebSockets work over TLS', async () => {
  await using at = await start();
  const url = `${at.service.urls.graphql?.replace('https', 'wss')}/graphql`;
  const socket = new WebSocket(url, 'graphql-transport-ws', { ca: at.authority.cert });
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  const [message] = await once(socket, 'message');
  assert.match(String(message), /connection_ack/);
  socket.terminate();
});

test('who never ends a handshake holds up no stop', async () => {
  await using at = await start();
  const { hostname, port } = new URL(at.service.urls.rest ?? '');
  const silent = connectPlainly(Number(port), hostname);
  await once(silent, 'connect');
  const closed = once(silent.resume(), 'close');
  await at.service.current.stop();
  await closed;
  assert.deepEqual(
    at.service.log.entries.filter(({ msg }) => String(msg).startsWith('stop deadline')),
    [],
  );
});

test('a handshake that does not end is cut after a while', async () => {
  await using at = await start();
  const { hostname, port } = new URL(at.service.urls.rest ?? '');
  const sockets = ['', '\x16\x03\x01'].map((text) => {
    const socket = connectPlainly(Number(port), hostname).resume();
    socket.write(Buffer.from(text, 'latin1'));
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
});

test('handshakes that grow large and do not end are cut, the largest first', async () => {
  await using at = await start();
  const { hostname, port } = new URL(at.service.urls.rest ?? '');
  const dial = () =>
    connectPlainly(Number(port), hostname)
      .on('error', () => {})
      .resume();
  // A first message of 128 KiB whose last bytes do not come, in records of 16 KiB.
  const message = Buffer.alloc(131_000);
  message[0] = 1;
  message.writeUIntBE(131_000, 1, 3);
  const records = Array.from({ length: 7 }, (_, i) => {
    const head = Buffer.from([0x16, 3, 1, 0x40, 0]);
    return Buffer.concat([head, message.subarray(i * 0x4000, (i + 1) * 0x4000)]);
  });
  const small = dial();
  small.write(records[0]?.subarray(0, 1_000) ?? '');
  // 23 MB of them, where 16 MiB are allowed.
  const large = Array.from({ length: 200 }, dial);
  for (const socket of large) socket.write(Buffer.concat(records));
  await waitFor('some to be cut', () => large.some(({ closed }) => closed));
  const socket = await handshake(at.service.urls.rest ?? '', trusting(at.authority));
  assert.equal(small.closed, false);
  for (const each of [socket, small, ...large]) each.destroy();
});

test('files that cannot be used end the start with what is wrong, and show no key', async () => {
  await using folder = await temporaryFolder();
  const one = makeCertificate('one');
  const env = await writeCertificate(folder.path, { ...one, key: makeCertificate('other').key });
  await assert.rejects(startTestService({ env }), {
    code: 'TLS_FILES',
    message: /cannot use the certificate .* with the key /,
  });
  await assert.rejects(startTestService({ env: { ...env, TLS_KEY: `${folder.path}/none` } }), {
    code: 'TLS_FILES',
    message: /the TLS key .*none cannot be read \(ENOENT\)/,
  });
  await writeCertificate(folder.path, one);
  await assert.rejects(startTestService({ env: { ...env, WEBHOOK_CLIENT_CA: env.TLS_KEY } }), {
    message: /holds no client authority certificate/,
  });
  await assert.rejects(
    startTestService({ env: { TLS_CERT: env.TLS_CERT } }),
    /tls\.cert is set and tls\.key is not/,
  );
  await assert.rejects(
    startTestService({ env: { MANAGEMENT_CLIENT_CA: env.TLS_CERT } }),
    /management\.clientCa is set and tls\.cert is not/,
  );
});
