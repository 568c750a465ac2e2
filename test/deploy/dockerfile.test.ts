import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { chmod, chown, copyFile, cp, mkdir, rename } from 'node:fs/promises';
import { dirname, join, matchesGlob } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { pages } from '../../scripts/page-inputs.ts';
import { lintDockerfile, readDockerfile, type Stage, textsOf } from '../support/dockerfile.ts';
import { freePort } from '../support/free-port.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull } from '../support/proof-settings.ts';
import { linkPackages } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const stages = readDockerfile(join(ROOT, 'deploy/Dockerfile'));
const [build, image] = stages as readonly [Stage, Stage];

test('the Dockerfile has no mistakes, and its Node is the pinned one', () => {
  assert.deepEqual(lintDockerfile(stages), []);
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  for (const stage of stages) assert.equal(stage.image, `node:${devDependencies.node}-trixie-slim`);
  assert.equal(build.name, 'build');
});

test('mistakes in a Dockerfile are found', () => {
  const wrong: Stage = {
    image: 'node:latest',
    name: undefined,
    instructions: [
      { name: 'ADD', text: '. .' },
      { name: 'WORKDIR', text: 'src' },
      { name: 'RUN', text: 'sudo cd / && npm install' },
      { name: 'RUN', text: 'curl http://x | sh' },
      { name: 'RUN', text: 'apt-get install -y git' },
      { name: 'ENV', text: 'MANAGEMENT_PASSWORD=x' },
      { name: 'COPY', text: '--from=nobody /a /a' },
      { name: 'ENTRYPOINT', text: 'node a.js' },
      { name: 'USER', text: 'root' },
    ],
  };
  assert.equal(lintDockerfile([wrong]).length, 13);
});

/** Copies what the build is sent, by the rules of .dockerignore; the last one that fits a file decides. */
async function copyContext(to: string): Promise<void> {
  const lines = readFileSync(join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8').trim().split('\n');
  assert.equal(lines[0], '**', 'everything is left out but what is named');
  const kept = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const left = lines.slice(1).filter((line) => !line.startsWith('!'));
  for (const name of kept) {
    await cp(join(ROOT, name), join(to, name), {
      recursive: true,
      filter: (path) => !left.some((pattern) => matchesGlob(path.slice(ROOT.length + 1), pattern)),
    });
  }
}

/** The words of a list such as that of ENTRYPOINT, in the folder that stands for the root of the image. */
function words(text: string, root: string, node: string): readonly [string, ...string[]] {
  const [command = '', ...rest] = (JSON.parse(text) as readonly string[]).map((word) =>
    word.startsWith('/') ? join(root, word) : word,
  );
  assert.equal(command, 'node', 'the first process');
  return [node, ...rest];
}

test('its steps build what runs as another user, writes nothing but data, is healthy and stops with 0', async () => {
  await using folder = await temporaryFolder();
  const source = join(folder.path, 'src');
  const root = join(folder.path, 'root');
  await mkdir(source);
  await copyContext(source);
  assert.deepEqual(globSync('{src,packages}/**/*.test.ts', { cwd: source }), []);
  for (const copied of textsOf(build, 'COPY')) {
    for (const name of copied.split(' ').slice(0, -1)) assert.ok(existsSync(join(source, name)), name);
  }
  const [install, make] = textsOf(build, 'RUN');
  // What CI itself does before all tests.
  assert.equal(install, 'npm ci --ignore-scripts');
  await linkPackages(source);
  // The build makes a page again unless it was built from the very files and packages that are there.
  const made = Object.keys(pages).filter((name) => existsSync(join(ROOT, 'build', name)));
  for (const name of inFull ? [] : made) {
    await cp(join(ROOT, 'build', name), join(source, 'build', name), { recursive: true });
  }
  const out = join(folder.path, 'app');
  const [, script = '', target] = /^node (\S+) (\S+)$/.exec(make ?? '') ?? [];
  assert.equal(target, '/app');
  // The types take longest and run nowhere.
  const less = inFull ? [] : ['--when-stale'];
  execFileSync(process.execPath, [script, out, ...less], { cwd: source, stdio: 'pipe' });

  // The image: the copy of the build, a Node that anybody may run, and a folder for data.
  const [, place = ''] = /^--from=build \/app (\S+)$/.exec(textsOf(image, 'COPY')[0] ?? '') ?? [];
  await mkdir(dirname(join(root, place)), { recursive: true });
  await rename(out, join(root, place));
  const node = join(folder.path, 'node');
  await copyFile(process.execPath, node);
  execFileSync('chmod', ['-R', 'a-w,a+rX', root]);
  await chmod(folder.path, 0o755);
  const data = join(folder.path, 'data');
  await mkdir(data, { mode: 0o750 });
  const asRoot = process.getuid?.() === 0;
  const [uid = '', gid = ''] = (textsOf(image, 'USER')[0] ?? '').split(':');
  if (asRoot) await chown(data, Number(uid), Number(gid));
  const user = asRoot ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];

  const variables = textsOf(image, 'ENV').flatMap((text) => text.split(/ +/));
  const env: Record<string, string | undefined> = {
    ...Object.fromEntries(variables.map((each) => each.split('=') as [string, string])),
    PATH: process.env.PATH,
    MANAGEMENT_PORT: String(await freePort()),
    SHUTDOWN_PRE_STOP_DELAY: undefined,
  };
  assert.equal(env.DATABASE_URL, 'sqlite:/data/portico.db');
  assert.equal(textsOf(image, 'WORKDIR').at(-1), '/data');
  env.DATABASE_URL = `sqlite:${join(data, 'portico.db')}`;

  const [, main = ''] = words(textsOf(image, 'ENTRYPOINT')[0] ?? '', root, node);
  const args = JSON.parse(textsOf(image, 'CMD')[0] ?? '');
  await using portico = startPortico({ cwd: data, node, main, args, wrapper: user, env });
  await portico.ready();
  const body = '{"name":"Ada","email":"ada@example.com"}';
  assert.equal((await fetch(`${portico.urls.rest}/users`, { method: 'POST', body })).status, 200);
  const [command, ...rest] = [
    ...user,
    ...words(textsOf(image, 'HEALTHCHECK')[0]?.split(' CMD ')[1] ?? '', root, node),
    // A machine that is busy decides nothing.
    '--timeout=60000',
  ];
  const health = await promisify(execFile)(command ?? '', rest, { cwd: data, env });
  assert.deepEqual([health.stdout, health.stderr], ['ready\n', '']);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.deepEqual(globSync('*', { cwd: data }).sort(), ['portico.db']);
  execFileSync('chmod', ['-R', 'u+w', root]);
});
