import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { loadConfig } from '../config/load.ts';
import { KnownSecrets } from '../core/redaction.ts';
import { configuredSecrets } from './configured-secrets.ts';

async function secretsOf(env: Record<string, string>, module = '{}'): Promise<readonly string[]> {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'file'), 'from-a-file\n');
  await writeFile(join(folder.path, 'portico.config.ts'), `export default ${module};`);
  return new KnownSecrets(configuredSecrets(await loadConfig({ argv: [], env, cwd: folder.path }))).texts;
}

test('secrets of every kind, the longest first', async () => {
  const module = `{
    management: { users: [{ user: 'ann', password: 'ann-password', roles: [] }] },
    webhook: { secret: ['secret-one', 'secret-one-two'] },
  }`;
  const env = {
    DATABASE_URL: 'postgres://me:pass%40word@host/db',
    DATABASE_READ_URL: 'postgres://me:replica-word@replica:5432,other:5433/db',
    MANAGEMENT_USER: 'operator',
    MANAGEMENT_PASSWORD_FILE: 'file',
  };
  const secrets = await secretsOf(env, module);
  assert.deepEqual([...secrets].sort(), [
    'ann-password',
    'from-a-file',
    'pass%40word',
    'pass@word',
    'replica-word',
    'secret-one',
    'secret-one-two',
  ]);
  // Or a shorter one would leave the rest of the longer one.
  assert.deepEqual(
    secrets,
    secrets.toSorted((a, b) => b.length - a.length),
  );
});

test('what is short would be found everywhere, and what is not set nowhere', async () => {
  assert.deepEqual(await secretsOf({}), []);
  assert.deepEqual(await secretsOf({ WEBHOOK_SECRET: 'abcde' }), []);
  assert.deepEqual(await secretsOf({ WEBHOOK_SECRET: 'abcdef', DATABASE_URL: 'postgres://h/%E0%A4%A' }), [
    'abcdef',
  ]);
});

test('more are added, each once', () => {
  const known = new KnownSecrets(['later-one', 1]);
  const before = known.texts;
  known.add(['later-one', undefined, 'x', 'the-latest-one', 'later-one']);
  assert.deepEqual(known.texts, ['the-latest-one', 'later-one']);
  assert.notEqual(known.texts, before);
});
