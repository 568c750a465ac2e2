import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { configSchema } from '../../scripts/config-schema.ts';
import { noticedPackages } from '../../scripts/license-notices.ts';
import { freePort } from '../support/free-port.ts';
import { PRINTED, PROGRAM, packPackage } from '../support/package.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull } from '../support/proof-settings.ts';
import { runShown, runShownUntil, type ShownCommand, shownCommand } from '../support/shown-commands.ts';

const ROOT = join(import.meta.dirname, '../..');

const { built, tarball, env, ...cleanup } = await packPackage();
after(() => cleanup[Symbol.asyncDispose]());

const PORTS = {
  GRAPHQL_PORT: '0',
  REST_PORT: '0',
  MANAGEMENT_PORT: '0',
  PORT: '0',
  SHUTDOWN_PRE_STOP_DELAY: '0',
};

/** npm and npx themselves, in a command of a document. */
const byNpm = (shown: ShownCommand) => ({
  ...shown,
  command: shown.command.replaceAll(/\bnp[mx] /g, 'command $&'),
});

/** What the package.json in a folder says that the service depends on. */
const dependencyIn = (place: string): string =>
  JSON.parse(readFileSync(join(place, 'my-service/package.json'), 'utf8')).dependencies.portico;

/** The command of the document, by a `portico` of any installation. */
function initBy(portico: string): ShownCommand {
  const shown = byNpm(shownCommand('docs/PACKAGE.md', /init my-service/));
  return { ...shown, command: shown.command.replace(/command npm exec .* -- portico/, portico) };
}

/** How a package.json names the copy of the tarball beside it. */
const COPIED = `file:${basename(tarball)}`;

/** A new folder below that of the tarball. */
async function emptyFolder(name: string): Promise<string> {
  const path = join(dirname(tarball), 'in', name);
  await mkdir(path, { recursive: true });
  return path;
}

/**
 * Writes a service into an empty folder by `portico` and starts it by the document's `npm install` and `npm start`.
 * Nothing is installed around it, so it can only start by what its own package.json names.
 */
async function beginService(place: string, portico: string) {
  const there = { cwd: place, env: { ...PORTS, ...env } };
  const init = await runShown(initBy(portico), there);
  assert.equal(init.code, 0, init.stderr);
  const start = byNpm(shownCommand('docs/PACKAGE.md', /^cd my-service/));
  const said = await runShownUntil(start, there, (text) => text.includes('"msg":"ready"'));
  assert.match(said, /"msg":"stopped"/);
  return join(place, 'my-service');
}

/** The folder of a service that was written by the package in the tarball alone. */
const fromTarball = await beginService(
  await emptyFolder('tarball'),
  `command npm exec --yes --package='${tarball}' -- portico`,
);

/** A copy of what npm has installed there, with the tarball, of which npm notes the path. */
const folder = await emptyFolder('tarball/installed');
await cp(join(fromTarball, 'node_modules'), join(folder, 'node_modules'), {
  recursive: true,
  verbatimSymlinks: true,
});
await cp(join(fromTarball, basename(tarball)), join(folder, basename(tarball)));
await writeFile(join(folder, 'package.json'), '{}');
const installed = join(folder, 'node_modules/portico');
const readJson = (path: string) => JSON.parse(readFileSync(join(installed, path), 'utf8'));

/** This Node, and the one that PORTICO_OTHER_NODE names. */
const nodes = [process.execPath, process.env.PORTICO_OTHER_NODE ?? ''];
for (const node of nodes) {
  const skip = node === '' ? 'PORTICO_OTHER_NODE names no other Node' : false;
  test(`the installed package runs on ${node || 'another Node'}: every entry, and the command`, {
    skip,
  }, async () => {
    const place = join(folder, execFileSync(node, ['-v'], { encoding: 'utf8' }).trim());
    await mkdir(place);
    await writeFile(join(place, 'package.json'), '{"type":"module"}');
    await writeFile(join(place, 'program.ts'), PROGRAM);
    const run = promisify(execFile);
    assert.equal((await run(node, ['program.ts'], { cwd: place, timeout: 300_000 })).stdout, PRINTED);

    const main = join(installed, 'bin/portico.js');
    await run(node, [main, 'init', '--yes'], { cwd: place });
    const port = String(await freePort());
    await using portico = startPortico({ cwd: place, node, main, env: { MANAGEMENT_PORT: port } });
    await portico.ready();
    const health = await run(node, [main, 'health', '--timeout=60000'], {
      cwd: place,
      env: { MANAGEMENT_PORT: port },
    });
    assert.equal(health.stdout, 'ready\n');
    assert.equal(await (await fetch(`${portico.urls.management}/actuator/motd`)).text(), 'Be kind.');
    portico.child.kill('SIGTERM');
    assert.equal(await portico.exited(), 0);
  });
}

test('its types are those of its entries, for programs, the examples and what portico init writes', async () => {
  for (const [name, entry] of Object.entries(readJson('package.json').exports)) {
    const paths = typeof entry === 'string' ? [entry] : Object.values(entry as Record<string, string>);
    for (const path of paths) assert.ok(existsSync(join(installed, path)), `${name}: ${path}`);
  }
  const place = join(folder, 'types');
  await cp(join(ROOT, 'examples'), place, { recursive: true });
  await writeFile(join(place, 'package.json'), '{"type":"module"}');
  await writeFile(join(place, 'program.ts'), PROGRAM);
  execFileSync(process.execPath, [join(installed, 'bin/portico.js'), 'init', '--yes'], {
    cwd: place,
    stdio: 'pipe',
  });
  await mkdir(join(place, 'node_modules'));
  await symlink(join(ROOT, 'node_modules/@types'), join(place, 'node_modules/@types'));
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'NodeNext',
    target: 'ES2024',
    lib: ['ES2024', 'ESNext.Disposable'],
    types: ['node'],
    allowImportingTsExtensions: true,
  };
  const include = ['program.ts', 'portico.config.mts', '*-plugin/*.ts', 'own-*/*.ts'];
  await writeFile(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include }));
  execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.'], {
    cwd: place,
    stdio: 'pipe',
  });
});

/** The first sample of a document that defines a configuration. */
function sample(document: string): string {
  return (
    /```ts\n(import \{ defineConfig[^`]*?export default.*?)```/s.exec(readFileSync(document, 'utf8'))?.[1] ??
    ''
  );
}

test('the sample of the tour and of the package runs in an empty folder and in one of npm init -y', async () => {
  const text = sample(join(ROOT, 'docs/TOUR.md'));
  assert.match(text, /defineConfig\(\{/);
  assert.equal(sample(join(built, 'README.md')), text);
  for (const type of [undefined, 'commonjs']) {
    const place = join(folder, `sample-${type}`);
    await mkdir(place);
    if (type !== undefined) await writeFile(join(place, 'package.json'), JSON.stringify({ type }));
    await writeFile(join(place, 'portico.config.mts'), text);
    const main = join(installed, 'bin/portico.js');
    await using portico = startPortico({ cwd: place, main });
    await portico.ready();
    assert.equal(await (await fetch(`${portico.urls.management}/actuator/motd`)).text(), 'Be kind.');
  }
});

test('nothing runs at its installation, and what its documents name is packed', () => {
  const { scripts, files, dependencies } = readJson('package.json');
  assert.equal(scripts, undefined);
  assert.ok(Object.keys(dependencies).length < 10);
  for (const name of files) assert.ok(existsSync(join(installed, name)), name);
  const manifests = globSync('node_modules/**/package.json', { cwd: folder, exclude: ['**/test*/**'] });
  const scripted = manifests.filter((path) => {
    const { name, version, scripts: own = {} } = JSON.parse(readFileSync(join(folder, path), 'utf8'));
    return name && version && ['preinstall', 'install', 'postinstall'].some((each) => each in own);
  });
  assert.deepEqual(scripted, []);
  for (const document of ['README.md', 'CHANGELOG.md']) {
    const text = readFileSync(join(installed, document), 'utf8');
    assert.doesNotMatch(text, /npm ci/, document);
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      assert.ok(existsSync(join(installed, target)), `${document}: ${target}`);
    }
  }
  assert.match(
    readFileSync(join(installed, 'README.md'), 'utf8'),
    /^\$ npm install .*\n\$ npx portico init --yes$/m,
  );
});

test('the schema of its configuration file is the one of the sources', () => {
  assert.deepEqual(readJson('portico.schema.json'), JSON.parse(JSON.stringify(configSchema())));
});

test('its bill of materials lists every package that is inside, with licence and hash', () => {
  const bill = readJson('sbom.cdx.json');
  assert.deepEqual([bill.bomFormat, bill.specVersion], ['CycloneDX', '1.6']);
  const notices = [
    'THIRD-PARTY-LICENSES.txt',
    'build/graphiql/LICENSES.txt',
    'build/docs/LICENSES.txt',
    'build/console/LICENSES.txt',
    'build/portal/LICENSES.txt',
  ];
  const inside = notices.flatMap((file) => noticedPackages(readFileSync(join(installed, file), 'utf8')));
  type Component = Readonly<{
    group?: string;
    name: string;
    version: string;
    purl: string;
    licenses: readonly unknown[];
    hashes: readonly { alg: string; content: string }[];
  }>;
  const components: readonly Component[] = bill.components;
  const listed = components.map(
    ({ group, name, version }) => `${group ? `${group}/` : ''}${name}@${version}`,
  );
  const expected = new Set(inside.map(({ name, version }) => `${name}@${version}`));
  assert.deepEqual(listed.toSorted(), [...expected].sort());
  for (const name of ['fastify', 'graphql', 'pg', 'react', 'swagger-ui-dist']) {
    assert.ok(
      components.some((each) => each.name === name && each.group === undefined),
      name,
    );
  }
  for (const { purl, licenses, hashes } of components) {
    assert.match(purl, /^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@\d/);
    assert.equal(licenses.length, 1, purl);
    assert.match(hashes[0]?.content ?? '', /^[\da-f]{128}$/, purl);
  }
});

test('npx finds what is installed, writes its configuration and starts it', async () => {
  const place = { cwd: folder, env: PORTS };
  // npx itself, which finds the package.
  const init = await runShown(byNpm(shownCommand('docs/PACKAGE.md', /^npx portico init --yes$/)), place);
  assert.equal(init.code, 0, init.stderr);
  assert.ok(existsSync(join(folder, 'portico.config.mts')));
  const start = byNpm(shownCommand('docs/PACKAGE.md', /^npx portico$/));
  const said = await runShownUntil(start, place, (text) => text.includes('"msg":"ready"'));
  assert.match(said, /"msg":"stopped"/);
  const [, line = ''] =
    /\n```\n( +Console .*)\n```\n/.exec(readFileSync(join(ROOT, 'docs/CONSOLE.md'), 'utf8')) ?? [];
  assert.match(line, /8080/);
  assert.match(said, new RegExp(`^${line.replace('8080', '\\d+')}$`, 'm'));
});

test('portico init depends on the tarball that the package in the folder was installed from', async () => {
  const init = await runShown(initBy('command npx portico'), { cwd: folder });
  assert.equal(init.code, 0, init.stderr);
  assert.match(init.stderr, /Run "npm install" and then "npm start" there, or "npm test"\.$/m);
  assert.equal(dependencyIn(folder), COPIED);
});

test('portico init from the tarball alone: npm install and npm start start the service', () => {
  assert.equal(dependencyIn(dirname(fromTarball)), COPIED);
  assert.ok(existsSync(join(fromTarball, 'node_modules/.bin/portico')));
});

test('the test of a project that portico init wrote passes', async () => {
  // Node would take it for a file of this run.
  const { NODE_TEST_CONTEXT: _, ...outside } = process.env;
  const { stdout } = await promisify(execFile)('npm', ['test'], {
    cwd: fromTarball,
    env: { ...outside, ...env },
  });
  assert.match(stdout, /the service is healthy, and stores a user/);
});

// npm notes nothing about it: the folder is linked, which needs no registry.
const inProof = inFull ? false : 'only npm run proof installs the package globally';
test('portico init from a global installation: npm install and npm start start the service', {
  skip: inProof,
}, async () => {
  const place = await emptyFolder('global');
  const words = ['install', '--silent', '--global', '--prefix', join(place, 'global'), tarball];
  await promisify(execFile)('npm', words, { cwd: place, env: { ...process.env, ...env } });
  const service = await beginService(place, `'${join(place, 'global/bin/portico')}'`);
  assert.equal(dependencyIn(place), 'file:../global/lib/node_modules/portico');
  assert.ok(existsSync(join(service, 'node_modules/.bin/portico')));
});

test('portico init depends on what npm has noted about the installation', async () => {
  const { version } = readJson('package.json');
  const notes: Readonly<Record<string, string>> = {
    'https://registry.example.com/portico/-/portico-0.1.0.tgz': `^${version}`,
    'git+ssh://git@git.example.com/portico.git#c0ffee': 'git+ssh://git@git.example.com/portico.git#c0ffee',
    'https://example.com/portico.tgz': 'https://example.com/portico.tgz',
    // The tarball is gone.
    'file:../gone.tgz': 'file:../node_modules/portico',
    '': 'file:../node_modules/portico',
  };
  const place = join(folder, 'noted');
  await cp(built, join(place, 'node_modules/portico'), { recursive: true });
  for (const [resolved, expected] of Object.entries(notes)) {
    const packages = { 'node_modules/portico': { resolved } };
    await writeFile(join(place, 'node_modules/.package-lock.json'), JSON.stringify({ packages }));
    const words = ['node_modules/portico/bin/portico.js', 'init', 'my-service', '--yes'];
    execFileSync(process.execPath, words, { cwd: place, stdio: 'pipe' });
    assert.equal(dependencyIn(place), expected);
    await rm(join(place, 'my-service'), { recursive: true });
  }
});
