import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startPortico } from '../support/portico-process.ts';
import { settingsOf, shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const GUIDE = readFileSync(join(ROOT, 'docs/OBSERVABILITY.md'), 'utf8');
const INSTALL = shownCommand('docs/OBSERVABILITY.md', /^npm install /);
const SERVE = shownCommand('docs/OBSERVABILITY.md', /^OTEL_SERVICE_NAME=/);
const [, INSTRUMENTATION = ''] = /`instrumentation\.ts`:\n\n```ts\n(.*?)```/s.exec(GUIDE) ?? [];

test('the guide installs the packages that its file imports, and no others', () => {
  const installed = INSTALL.command.match(/@[\w-]+\/[\w-]+/g) ?? [];
  const imported = [...INSTRUMENTATION.matchAll(/ from '([^']+)'/g)].map(([, name = '']) => name);
  assert.deepEqual(installed.toSorted(), imported.toSorted());
});

test('a service that is started as the guide says sends what it has under its name', async () => {
  await using folder = await temporaryFolder();
  await using otlp = await startOtlpReceiver();
  await symlink(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  await writeFile(join(folder.path, 'instrumentation.ts'), INSTRUMENTATION);
  const env = settingsOf(SERVE, { 'http://127.0.0.1:4318': otlp.url });
  await using portico = startPortico({ cwd: folder.path, env: { ...env, TRACING_ONE_IN: '1' } });
  await portico.ready();
  await fetch(`${portico.urls.rest}/users`);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0, portico.stderr);
  assert.equal(otlp.spans.find(({ name }) => name === 'GET /users')?.service, env.OTEL_SERVICE_NAME);
  assert.ok(otlp.metrics.has('http.server.requests.count'));
  assert.equal(env.TRACING_ONE_IN, '100');
});
