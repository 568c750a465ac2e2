import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildSchema } from 'graphql';
import { startTestService } from '../support/service.ts';
import { runShown, settingsOf, shownCommand } from '../support/shown-commands.ts';
import { waitFor } from '../support/wait-for.ts';

const SERVE = shownCommand('docs/MANAGEMENT.md', /^MANAGEMENT_INCLUDE='\*' npm start$/);
const SCRAPE = shownCommand('docs/MANAGEMENT.md', /^curl .*prometheus$/);
const SET_LEVEL = shownCommand('docs/MANAGEMENT.md', /^curl .*loggers/);
const HASH = shownCommand('docs/MANAGEMENT.md', /^npm run portico -- hash-password$/);
const AUDIT = shownCommand('docs/MANAGEMENT.md', /^curl .*auditevents/);
const DESCRIBE = shownCommand('docs/API.md', /^curl -so portico\.json/);
const API = readFileSync(join(import.meta.dirname, '../../docs/API.md'), 'utf8');

test('the management door answers what the guides ask it', async () => {
  await using service = await startTestService({ env: { ...settingsOf(SERVE), WEBHOOK_SECRET: 'sesame' } });
  await service.listen();
  const { urls, folder } = service;
  const run = async (shown: typeof SCRAPE) => {
    const { code, stdout, stderr } = await runShown(shown, { cwd: folder, urls });
    assert.equal(code, 0, `${shown.command}\n${stderr}`);
    return stdout;
  };
  assert.match(await run(SCRAPE), /^process_uptime_seconds \d/m);

  assert.equal(await run(SET_LEVEL), '');
  const level = await (await fetch(`${urls.management}/actuator/loggers/rest`)).json();
  assert.equal((level as { configuredLevel: string }).configuredLevel, 'DEBUG');

  const refused = await fetch(`${urls.webhook}/webhook`, { method: 'POST', body: '{"event":"x"}' });
  assert.equal(refused.status, 401);
  await waitFor('the refusal to be written', async () => {
    const { events } = JSON.parse(await run(AUDIT)) as { events: readonly { type: string }[] };
    return events.some(({ type }) => type === 'AUTHENTICATION_FAILURE');
  });

  assert.equal(await run(DESCRIBE), '');
  const { openapi, paths } = JSON.parse(await readFile(join(folder, 'portico.json'), 'utf8'));
  assert.match(openapi, /^3\.1\./);
  assert.ok('/users' in paths && '/webhook' in paths);
  const [, command = ''] = /For GraphQL: `([^`]+)`/.exec(API) ?? [];
  await run({ ...DESCRIBE, command });
  assert.ok(buildSchema(await readFile(join(folder, 'schema.graphql'), 'utf8')).getQueryType());
});

test('a password that is hashed as the guide says lets its user in', async () => {
  const { stdout, stderr } = await runShown(HASH, { cwd: import.meta.dirname, input: 'sesame\n' });
  assert.match(stdout, /^\$scrypt\$/, stderr);
  await using service = await startTestService({
    env: { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: stdout.trim() },
  });
  await service.listen();
  for (const [password, status] of [
    ['sesame', 200],
    ['other', 401],
  ] as const) {
    const headers = { authorization: `Basic ${btoa(`ops:${password}`)}` };
    assert.equal((await fetch(`${service.urls.management}/actuator/env`, { headers })).status, status);
  }
});
