import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { makeCertificate, writeCertificate } from '../support/certificates.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Shown {
  readonly principal: string;
  readonly type: string;
  readonly data: Readonly<Record<string, string | number>>;
}

test('each client that a door refuses for its certificate is an audit event', async () => {
  await using folder = await temporaryFolder();
  const authority = makeCertificate('authority');
  const clients = makeCertificate('clients');
  const ca = `${folder.path}/clients.pem`;
  await writeFile(ca, clients.cert);
  const tls = await writeCertificate(folder.path, makeCertificate('portico', authority));
  await using service = await startTestService({
    env: {
      ...tls,
      MANAGEMENT_CLIENT_CA: ca,
      WEBHOOK_CLIENT_CA: ca,
      MANAGEMENT_INCLUDE: 'auditevents',
      LOG_LEVEL: 'debug',
    },
  });
  await service.listen();
  const { management, webhook, rest } = service.urls;
  const own = ({ cert, key }: typeof clients) => ({ cert, key });
  const known = own(makeCertificate('known', clients));
  const stranger = own(makeCertificate('stranger', makeCertificate('others')));
  const get = async (url: string, options: ConnectionOptions) => {
    const call = request(url, { agent: false, ca: authority.cert, ...options });
    // A connection that is cut may fail more than once.
    call.on('error', () => {}).end();
    const [response] = await once(call, 'response');
    return response;
  };

  for (const [door, path] of [
    [management, '/livez'],
    [webhook, '/'],
  ]) {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const only = { minVersion: version, maxVersion: version };
      await assert.rejects(get(`${door}${path}`, only));
      await assert.rejects(get(`${door}${path}`, { ...only, ...stranger }));
    }
  }
  // A door without an authority asks nobody, and who distrusts the door is not refused by it.
  (await get(`${rest}/users`, {})).destroy();
  await assert.rejects(get(`${management}/livez`, { ...known, ca: clients.cert }));

  const shown = async () => {
    const reply = await get(`${management}/actuator/auditevents`, known);
    return ((await json(reply)) as { readonly events: readonly Shown[] }).events;
  };
  const events = await waitFor('the events', async () => {
    const found = await shown();
    return found.length >= 8 && found;
  });
  const told = events.map(({ principal, type, data }) => [principal, type, ...Object.values(data)].join(' '));
  const expected = ['management', 'webhook'].flatMap((door) =>
    ['ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'].flatMap((code) =>
      ['TLS 1.2', 'TLS 1.3'].map(() => `anonymous AUTHENTICATION_FAILURE ${door} ${code} 127.0.0.1`),
    ),
  );
  assert.deepEqual(told.toSorted(), expected.toSorted());
});
