import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { projectFiles, projectName } from '../../src/cli/project-files.ts';
import { lintDockerfile, readDockerfile, textsOf } from '../support/dockerfile.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** What `portico init` writes into a folder of this name. */
async function project(name: string) {
  const folder = await temporaryFolder();
  const path = join(folder.path, name);
  await mkdir(path);
  execFileSync(process.execPath, [join(ROOT, 'bin/portico.js'), 'init', path, '--yes'], { stdio: 'pipe' });
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

test('a project has all of its files, and none is overwritten', async () => {
  await using made = await project('My Shop!');
  assert.deepEqual((await readdir(made.path)).toSorted(), [
    '.dockerignore',
    '.gitignore',
    'Dockerfile',
    'compose.yaml',
    'my-shop.service',
    'package.json',
    'portico.config.mts',
    'service.test.mjs',
  ]);
  const again = spawnSync(process.execPath, [join(ROOT, 'bin/portico.js'), 'init', made.path, '--yes']);
  assert.match(String(again.stderr), /portico\.config\.mts is already there; nothing was written/);
  await using other = await project('b');
  const kept = join(other.path, 'package.json');
  await writeFile(kept, '{}');
  execFileSync('rm', [join(other.path, 'portico.config.mts'), join(other.path, 'Dockerfile')]);
  execFileSync(process.execPath, [join(ROOT, 'bin/portico.js'), 'init', other.path, '--yes'], {
    stdio: 'pipe',
  });
  assert.equal(existsSync(join(other.path, 'Dockerfile')), false);
  execFileSync('rm', [join(other.path, 'portico.config.mts')]);
  const words = ['init', other.path, '--package', '--yes'];
  execFileSync(process.execPath, [join(ROOT, 'bin/portico.js'), ...words], { stdio: 'pipe' });
  assert.equal(existsSync(join(other.path, 'Dockerfile')), true);
  assert.equal(await readFile(kept, 'utf8'), '{}');
});

test('its image has the pinned Node and no mistakes, and copies the tarball that it installs', async () => {
  await using made = await project('shop');
  const stages = readDockerfile(join(made.path, 'Dockerfile'));
  assert.deepEqual(lintDockerfile(stages), []);
  assert.deepEqual(
    stages.map(({ image }) => image),
    [`node:${devDependencies.node}-trixie-slim`],
  );
  const files = projectFiles({
    name: 'shop',
    dependency: ['portico', 'file:portico-0.1.0.tgz'],
    tarball: 'portico-0.1.0.tgz',
    node: devDependencies.node,
  });
  await writeFile(join(made.path, 'Dockerfile'), files.Dockerfile ?? '');
  const [image] = readDockerfile(join(made.path, 'Dockerfile'));
  assert.ok(image !== undefined);
  assert.deepEqual(textsOf(image, 'COPY'), ['package.json package-lock.json portico-0.1.0.tgz ./', '. .']);
});

test('compose publishes doors on loopback alone, and keeps the data', async () => {
  await using made = await project('shop');
  const { services, volumes } = parse(await readFile(join(made.path, 'compose.yaml'), 'utf8'));
  for (const port of services.shop.ports) assert.match(port, /^127\.0\.0\.1:(\d+):\1$/);
  assert.deepEqual(services.shop.volumes, ['data:/data']);
  assert.deepEqual(Object.keys(volumes), ['data']);
});

const missing = existsSync('/usr/bin/systemd-analyze') ? false : 'systemd-analyze is not installed';
test('systemd takes its unit, and finds it confined', { skip: missing }, async () => {
  await using made = await project('shop');
  const file = join(made.path, 'shop.service');
  // Verifying needs programs that are there.
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^ExecStart=.*/m, 'ExecStart=/bin/true'));
  const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
  assert.deepEqual(
    stderr.split('\n').filter((line) => line.includes('shop.service')),
    [],
  );
  const args = ['security', '--offline=true', '--no-pager', file];
  const [, level] =
    /exposure level for \S+: ([\d.]+)/.exec(execFileSync('systemd-analyze', args, { encoding: 'utf8' })) ??
    [];
  assert.ok(Number(level) < 2, `exposure ${level}`);
});

test('a name has small letters, digits and hyphens', () => {
  assert.equal(projectName('My Shop!'), 'my-shop');
  assert.equal(projectName('\u00e4\u00f6'), 'my-service');
  assert.equal(projectName('a_b.c'), 'a-b-c');
});
