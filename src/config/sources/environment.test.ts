import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { expectedPassword } from '../options/password-option.ts';
import { readEnvironment } from './environment.ts';

const problems = (env: Record<string, string>, cwd = '/') => readEnvironment(env, cwd).problems;

test('variables set their options', () => {
  const reading = readEnvironment({ PORT: '1', REST_PORT: '2', HOME: '/x', UNSET: undefined }, '/');
  assert.deepEqual(
    [...reading.found],
    [
      ['rest.port', { value: 2, origin: 'REST_PORT' }],
      ['webhook.port', { value: 1, origin: 'PORT' }],
    ],
  );
  assert.deepEqual(reading.problems, []);
});

test('every variable that is wrong has its line', () => {
  assert.deepEqual(problems({ PORT: 'http', LOG_LEVEL: '', WEBHOOK_SECRET: '', MANAGEMENT_EXCLUDE: '' }), [
    'PORT must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "http"',
    'WEBHOOK_SECRET is empty; unset it to leave the door unsecured',
    'LOG_LEVEL is empty; unset it for the default (info)',
  ]);
});

test('a secret can come from a file, less one newline at its end', async () => {
  await using folder = await temporaryFolder();
  const files = { unix: 's1,s2\n', dos: 'p w\r\n', bare: 'postgres://u:p@h/d', two: 'p\n\n' };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder.path, name), content);
  const reading = readEnvironment(
    {
      WEBHOOK_SECRET_FILE: join(folder.path, 'unix'),
      MANAGEMENT_PASSWORD_FILE: 'dos',
      DATABASE_URL_FILE: 'bare',
    },
    folder.path,
  );
  assert.deepEqual(reading.problems, []);
  assert.deepEqual(Object.fromEntries([...reading.found].map(([key, { value }]) => [key, value])), {
    'database.url': 'postgres://u:p@h/d',
    'management.password': 'p w',
    'webhook.secret': ['s1', 's2'],
  });
  assert.equal(reading.found.get('webhook.secret')?.origin, 'WEBHOOK_SECRET_FILE');
  assert.deepEqual(problems({ MANAGEMENT_PASSWORD_FILE: 'two' }, folder.path), [
    `the file that MANAGEMENT_PASSWORD_FILE names must be ${expectedPassword}`,
  ]);
});

test('a variable and its file together are a problem', () => {
  assert.deepEqual(problems({ WEBHOOK_SECRET: 'a', WEBHOOK_SECRET_FILE: '/x' }), [
    'WEBHOOK_SECRET and WEBHOOK_SECRET_FILE are both set; unset one of them',
  ]);
});

test('a file that cannot be used is a problem that names it', async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, 'folder'));
  await writeFile(join(folder.path, 'empty'), '\n');
  await writeFile(join(folder.path, 'latin1'), Buffer.from([0x68, 0xfc]));
  const of = (file: string) => problems({ WEBHOOK_SECRET_FILE: file }, folder.path);
  assert.deepEqual(of('gone'), ['WEBHOOK_SECRET_FILE names the file "gone", which cannot be read (ENOENT)']);
  assert.deepEqual(of('folder'), [
    'WEBHOOK_SECRET_FILE names the file "folder", which cannot be read (EISDIR)',
  ]);
  assert.deepEqual(of('latin1'), ['WEBHOOK_SECRET_FILE names the file "latin1", which is not UTF-8 text']);
  assert.deepEqual(of(''), ['WEBHOOK_SECRET_FILE is empty; unset it or name a file']);
  assert.deepEqual(of('empty'), [
    'the file that WEBHOOK_SECRET_FILE names is empty; unset WEBHOOK_SECRET_FILE to leave the door unsecured',
  ]);
});

test('only secrets can come from a file', () => {
  const reading = readEnvironment({ REST_PORT_FILE: '/nowhere' }, '/');
  assert.deepEqual([reading.found.size, reading.problems.length], [0, 0]);
});

test('a variable that was renamed has its line', () => {
  assert.deepEqual(problems({ MANAGEMENT_TRUST_FORWARDED: 'true' }), [
    'MANAGEMENT_TRUST_FORWARDED is not read any more; did you mean TRUST_PROXY?',
  ]);
  assert.deepEqual(problems({ MANAGEMENT_CONSOLE_HOSTS: 'ops.example' }), [
    'MANAGEMENT_CONSOLE_HOSTS is not read any more; did you mean HTTP_HOSTS?',
  ]);
});
