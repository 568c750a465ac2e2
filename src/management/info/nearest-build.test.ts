import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { nearestBuild } from './nearest-build.ts';

test('the nearest package.json with a name above the program, then above the working folder', async () => {
  await using folder = await temporaryFolder();
  const at = (path: string) => join(folder.path, path);
  const write = async (path: string, text: string) => {
    await mkdir(dirname(at(path)), { recursive: true });
    await writeFile(at(path), text);
  };
  await write('shop/package.json', '{"name":"shop","version":"1.2.3"}');
  await write('shop/dist/package.json', '{"type":"module"}');
  await write('shop/dist/deep/main.js', '');
  await write('other/package.json', '{"name":"other"}');
  await write('other/bad/package.json', '{"name":');
  await write('alone/main.js', '');
  await symlink(at('shop/dist/deep/main.js'), at('alone/link.js'));
  const shop = { name: 'shop', artifact: 'shop', version: '1.2.3' };
  const other = { name: 'other', artifact: 'other', version: '0.0.0' };

  assert.deepEqual(nearestBuild(at('shop/dist/deep/main.js'), at('other')), shop);
  assert.deepEqual(nearestBuild(at('alone/link.js'), at('other')), shop);
  assert.deepEqual(nearestBuild(at('alone/main.js'), at('other/bad')), other);
  for (const program of ['', at('nowhere.js')]) {
    assert.deepEqual(nearestBuild(program, at('other')), other);
  }
});
