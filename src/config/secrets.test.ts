import assert from 'node:assert/strict';
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from 'portico';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { liveSecrets } from './secrets.ts';

/** The secret of /webhook, from a file with that text; `told` has what was said of each change. */
async function follow(
  text: string,
  env: Readonly<Record<string, string>> = { WEBHOOK_SECRET_FILE: 'secret' },
) {
  await using cleanup = new AsyncDisposableStack();
  const { path: folder } = cleanup.use(await temporaryFolder());
  const file = join(folder, 'secret');
  writeFileSync(file, text);
  const config = await loadConfig({ argv: [], env, cwd: folder });
  const told: (string | undefined)[] = [];
  const secret = cleanup.use(liveSecrets(config, (problem) => told.push(problem)));
  const rest = cleanup.move();
  return {
    folder,
    file,
    secret,
    told,
    /** Waits until so many changes were noticed. */
    changes: (count: number) => waitFor(`${count} changes`, () => told.length >= count),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

test('a change of the file is followed: old, both, new', async () => {
  await using watched = await follow('old\n');
  assert.deepEqual(watched.secret.current, ['old']);
  writeFileSync(watched.file, 'new,old\n');
  await watched.changes(1);
  assert.deepEqual(watched.secret.current, ['new', 'old']);
  writeFileSync(watched.file, 'new');
  await watched.changes(2);
  assert.deepEqual(watched.secret.current, ['new']);
  assert.deepEqual(watched.told, [undefined, undefined]);
});

test('what cannot be used keeps the old secrets, says why without showing any, and is followed further', async () => {
  await using watched = await follow('old');
  const bad: readonly (readonly [string | Uint8Array, RegExp])[] = [
    ['', /is empty/],
    ['hunter2,,', /must be one or more secrets/],
    [Buffer.from([0x68, 0xff]), /not UTF-8/],
  ];
  for (const [i, [text, problem]] of bad.entries()) {
    writeFileSync(watched.file, text);
    await watched.changes(i + 1);
    assert.deepEqual(watched.secret.current, ['old']);
    assert.match(watched.told[i] ?? '', problem);
    assert.doesNotMatch(watched.told[i] ?? '', /hunter2/);
  }
  rmSync(watched.file);
  await watched.changes(bad.length + 1);
  assert.match(watched.told.at(-1) ?? '', /cannot be read \(ENOENT\)/);
  assert.deepEqual(watched.secret.current, ['old']);
  writeFileSync(watched.file, 'back');
  await watched.changes(bad.length + 2);
  assert.deepEqual([watched.secret.current, watched.told.at(-1)], [['back'], undefined]);
  writeFileSync(watched.file, '');
  await watched.changes(bad.length + 3);
  writeFileSync(watched.file, 'back');
  await watched.changes(bad.length + 4);
  assert.equal(watched.told.at(-1), undefined, 'it is well again');
});

test('a file that is put in the place of the other, and a link that leads elsewhere', async () => {
  await using watched = await follow('same');
  const { folder, file } = watched;
  writeFileSync(join(folder, 'next'), 'else');
  renameSync(join(folder, 'next'), file);
  await watched.changes(1);
  assert.deepEqual(watched.secret.current, ['else']);
  writeFileSync(join(folder, 'v2'), 'link');
  symlinkSync(join(folder, 'v2'), join(folder, 'link'));
  renameSync(join(folder, 'link'), file);
  await watched.changes(2);
  assert.deepEqual(watched.secret.current, ['link']);
});

test('a secret that does not come from a file stays as it is', async () => {
  await using watched = await follow('of the file', { WEBHOOK_SECRET: 'of the variable' });
  assert.deepEqual(watched.secret.current, ['of the variable']);
});
