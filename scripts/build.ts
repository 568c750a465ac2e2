// Builds dist/, the package as it is published and as `npm start` runs it. An argument names another folder.
//   --when-stale  builds only if a source has changed, and without the types, which take longest
//   --optional    prints a note instead of building if the development packages are not installed
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readGitInfo } from '../src/app/build-info.ts';
import { buildInputs, builtFrom } from './build-inputs.ts';
import { noticedPackages } from './license-notices.ts';
import { entriesOf, type Manifest, packageManifest } from './package-manifest.ts';
import { pages } from './page-inputs.ts';
import { sbom } from './sbom.ts';

const ROOT = join(import.meta.dirname, '..');
const COPIED = ['LICENSE', ...Object.keys(pages).map((page) => `build/${page}`)];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'when-stale': { type: 'boolean' }, optional: { type: 'boolean' } },
});
const DIST = resolve(positionals[0] ?? join(ROOT, 'dist'));

/** Writes to standard error, because standard output belongs to the command that npm runs next. */
function run(script: string, args: readonly string[]): void {
  execFileSync(process.execPath, [join(ROOT, script), ...args], { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

/** Starts the service once, without the settings and the output of whoever builds. */
function compileService(target: string): void {
  const { PATH, TMPDIR } = process.env;
  const env = { PATH, ...(TMPDIR && { TMPDIR }) };
  execFileSync(process.execPath, [join(ROOT, 'scripts/code-cache.ts'), target], { env, stdio: 'pipe' });
}

/** Builds everything but the types. */
async function bundle(target: string, inputs: string): Promise<void> {
  // Loaded here only, because it needs the development packages.
  const { bundleCommand, bundleLibrary, bundleThreads } = await import('./bundles.ts');
  const manifest = JSON.parse(read(join(ROOT, 'package.json'))) as Manifest;
  const [licenses] = await Promise.all([
    bundleCommand(ROOT, target),
    bundleThreads(ROOT, target),
    bundleLibrary(ROOT, target, entriesOf(manifest)),
  ]);
  for (const file of [...globSync('src/**/*.sql', { cwd: ROOT }), ...COPIED]) {
    cpSync(join(ROOT, file), join(target, file), { recursive: true });
  }
  // The facts that /info shows about the package, and the hash of its inputs.
  const info = { time: new Date().toISOString(), git: await readGitInfo(ROOT), inputs };
  writeFileSync(join(target, 'build/build-info.json'), `${JSON.stringify(info)}\n`);
  writeFileSync(join(target, 'THIRD-PARTY-LICENSES.txt'), licenses);
  const packed = packageManifest(manifest);
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  const notices = globSync('build/*/LICENSES.txt', { cwd: target }).map((file) => read(join(target, file)));
  const lock = JSON.parse(read(join(ROOT, 'package-lock.json')));
  const bom = sbom(packed, [licenses, ...notices].flatMap(noticedPackages), lock);
  writeFileSync(join(target, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`);
  const { configSchema } = await import('./config-schema.ts');
  writeFileSync(join(target, 'portico.schema.json'), `${JSON.stringify(configSchema(), null, 2)}\n`);
  writeFileSync(join(target, 'README.md'), read(join(ROOT, 'docs/PACKAGE.md')));
  // The pages that it refers to are not packed.
  writeFileSync(
    join(target, 'CHANGELOG.md'),
    read(join(ROOT, 'CHANGELOG.md')).replace(/\[([^\]]+)\]\((?!https?:)[^)]*\)/g, '$1'),
  );
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

/**
 * Makes declarations refer to the files of the workspace's packages, which are not installed as packages with
 * Portico.
 */
function nameFiles(types: string): void {
  for (const file of globSync('**/*.d.ts', { cwd: types })) {
    const path = join(types, file);
    const text = read(path);
    const named = text.replaceAll(/'@portico\/([\w-]+)'/g, (_, name: string) => {
      const to = relative(dirname(path), join(types, 'packages', name, 'index.js')).replaceAll('\\', '/');
      return `'${to.startsWith('.') ? to : `./${to}`}'`;
    });
    if (named !== text) writeFileSync(path, named);
  }
}

/** Builds into a temporary folder and swaps it in, so that no start sees a partial build. */
async function build(inputs: string): Promise<void> {
  const draft = `${DIST}.${process.pid}`;
  const types = join(DIST, 'types');
  try {
    mkdirSync(draft, { recursive: true });
    run('scripts/build-pages.ts', []);
    await bundle(draft, inputs);
    compileService(draft);
    if (!flags['when-stale']) {
      run('node_modules/typescript/bin/tsc', ['-p', 'tsconfig.build.json', '--outDir', join(draft, 'types')]);
      nameFiles(join(draft, 'types'));
    } else if (existsSync(types)) {
      renameSync(types, join(draft, 'types'));
    }
    rmSync(DIST, { recursive: true, force: true });
    renameSync(draft, DIST);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

const hasTools = existsSync(join(ROOT, 'node_modules/esbuild'));
const inputs = await buildInputs(ROOT);
if (flags['when-stale'] && builtFrom(DIST) === inputs) {
  // Nothing has changed.
} else if (!hasTools && flags.optional) {
  process.stderr.write('Portico: not built, because the development packages are not installed.\n');
} else if (!hasTools) {
  process.stderr.write(
    'Portico: the build needs the development packages; run "npm ci" without --omit=dev.\n',
  );
  process.exitCode = 1;
} else {
  const start = performance.now();
  await build(inputs);
  process.stderr.write(`Portico: ${DIST} built in ${((performance.now() - start) / 1000).toFixed(1)} s.\n`);
}
