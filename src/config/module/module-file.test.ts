import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { displayPath, findModule } from './module-file.ts';

test('the module of the working folder is found by its name', async () => {
  for (const ending of ['ts', 'mts', 'js', 'mjs', 'json']) {
    await using folder = await temporaryFolder();
    const name = `portico.config.${ending}`;
    const path = join(folder.path, name);
    assert.deepEqual(findModule(folder.path, undefined, undefined), { file: undefined });
    await writeFile(path, '{}');
    assert.deepEqual(findModule(folder.path, undefined, undefined), { file: { path, name } });
  }
});

test('a folder of that name is none', async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, 'portico.config.ts'));
  assert.deepEqual(findModule(folder.path, undefined, undefined), { file: undefined });
});

test('several modules are a problem, unless one is named', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), '');
  await writeFile(join(folder.path, 'portico.config.json'), '');
  assert.deepEqual(findModule(folder.path, undefined, undefined), {
    problem: 'portico.config.ts and portico.config.json are both here; keep one or name one with --config',
  });
  const path = join(folder.path, 'portico.config.json');
  assert.deepEqual(findModule(folder.path, undefined, 'portico.config.json'), {
    file: { path, name: 'portico.config.json' },
  });
});

test('the flag wins over the variable', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'a.ts'), '');
  const path = join(folder.path, 'a.ts');
  assert.deepEqual(findModule(folder.path, 'a.ts', 'b.ts'), { file: { path, name: 'a.ts' } });
});

test('a named module must be there and of a kind that can be loaded', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'config.yaml'), '');
  assert.deepEqual(findModule(folder.path, undefined, 'b.ts'), {
    problem: 'CONFIG names "b.ts", and there is no such file (looked for b.ts)',
  });
  assert.deepEqual(findModule(folder.path, '../b.ts', undefined), {
    problem: `--config names "../b.ts", and there is no such file (looked for ${join(folder.path, '../b.ts')})`,
  });
  assert.deepEqual(findModule(folder.path, 'config.yaml', undefined), {
    problem: '--config names "config.yaml"; a configuration module ends in .ts, .mts, .js, .mjs or .json',
  });
  assert.deepEqual(findModule(folder.path, undefined, ''), {
    problem: 'CONFIG is empty; unset it or name a file',
  });
  assert.ok('problem' in findModule(folder.path, 'a\u0000.ts', undefined));
});

test('paths are shown from the working folder when they lie inside', () => {
  assert.equal(displayPath('/a/b/c.ts', '/a'), 'b/c.ts');
  assert.equal(displayPath('/a/..b/c.ts', '/a'), '..b/c.ts');
  assert.equal(displayPath('/b/c.ts', '/a'), '/b/c.ts');
  assert.equal(displayPath('/a', '/a'), '/a');
});
