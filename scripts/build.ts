import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readGitInfo } from '../src/app/git-info.ts';

// Makes dist/, the package as it is published: the same layout as the sources, because Node strips types
// only outside node_modules. An argument names another folder.
const ROOT = join(import.meta.dirname, '..');
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'));
const run = (script: string, args: readonly string[]) =>
  execFileSync(process.execPath, [join(ROOT, script), ...args], { cwd: ROOT, stdio: 'inherit' });

rmSync(DIST, { recursive: true, force: true });
run('scripts/build-graphiql.ts', []);
run('node_modules/typescript/bin/tsc', ['-p', 'tsconfig.build.json', '--outDir', join(DIST, 'src')]);
for (const file of globSync('src/**/*.sql', { cwd: ROOT })) cpSync(join(ROOT, file), join(DIST, file));
cpSync(join(ROOT, 'build/graphiql'), join(DIST, 'build/graphiql'), { recursive: true });
mkdirSync(join(DIST, 'bin'));
const command = readFileSync(join(ROOT, 'bin/portico.js'), 'utf8');
writeFileSync(join(DIST, 'bin/portico.js'), command.replace('main.ts', 'main.js'), { mode: 0o755 });
// What /info says of the package.
const info = { time: new Date().toISOString(), git: await readGitInfo(ROOT) };
writeFileSync(join(DIST, 'build/build-info.json'), `${JSON.stringify(info)}\n`);
for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE']) cpSync(join(ROOT, file), join(DIST, file));

interface Manifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}
const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
const built = (path: string) => path.replace(/\.ts$/, '.js');
const entry = (path: string) =>
  path.endsWith('.ts') ? { types: path.replace(/\.ts$/, '.d.ts'), default: built(path) } : path;
const { private: _private, scripts: _scripts, devDependencies: _dev, allowScripts: _allow, ...kept } = root;
const manifest = {
  ...kept,
  // Installing the sources works on any Node that npm supports, because they bring their own; the package does not.
  engines: { node: '>=24' },
  exports: Object.fromEntries(Object.entries(root.exports).map(([name, path]) => [name, entry(path)])),
  files: ['bin', 'src', 'build'],
};
writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
process.stdout.write(`The package is ready: npm publish ${DIST}\n`);
