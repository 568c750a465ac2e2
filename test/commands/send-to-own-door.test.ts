import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCertificate, writeCertificate } from '../support/certificates.ts';
import { runPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MODULE = `export default { webhook: { sources: { shop: { scheme: 'github', secrets: 's' } } } };`;

/** What `portico send` says, run with the settings of a service, on the port that it got. */
async function sendTo(env: Readonly<Record<string, string>>) {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), MODULE);
  await using service = await startTestService({ env, module: MODULE });
  await service.listen();
  const url = service.urls.webhook ?? '';
  const PORT = url.startsWith('unix:') ? url : new URL(url).port;
  const args = ['send', '--source', 'shop', '--event', 'x'];
  return await runPortico(args, { cwd: folder.path, env: { ...env, PORT } });
}

test('send finds the webhook door on its Unix socket', async () => {
  await using folder = await temporaryFolder();
  const { code, stdout } = await sendTo({ PORT: `unix:${join(folder.path, 'webhook.sock')}` });
  assert.deepEqual({ code, stdout }, { code: 0, stdout: '200 OK\nWebhook received\n' });
});

test('send trusts the certificate of the configuration and no other', async () => {
  await using folder = await temporaryFolder();
  const own = makeCertificate('of no host', makeCertificate('an authority that nobody knows'));
  const tls = await writeCertificate(folder.path, own);
  const { code, stdout, stderr } = await sendTo(tls);
  assert.deepEqual({ code, stdout }, { code: 0, stdout: '200 OK\nWebhook received\n' }, stderr);
});
