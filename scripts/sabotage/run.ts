/**
 * `npm run sabotage` applies each sabotage to a copy of the program and runs the test that must fail. An
 * argument selects those whose promise contains it. The exit code is 1 if a test passes on a sabotaged
 * program.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { linkPackages } from '../../test/support/source-copy.ts';
import { SABOTAGES, type Sabotage } from './sabotages.ts';

const ROOT = join(import.meta.dirname, '../..');
const COPIED = [
  ...[
    'bin',
    'src',
    'packages',
    'test',
    'scripts',
    'docs',
    'examples',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
  ],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'],
];
const TIMEOUT = 600_000;

const copy = mkdtempSync(join(tmpdir(), 'portico-sabotage-'));
process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
process.once('SIGINT', () => process.exit(130));
for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
symlinkSync(join(ROOT, 'build'), join(copy, 'build'));
await linkPackages(copy);

/** Whether the test fails on the program in the copy. */
function fails(test: string): boolean {
  const { status } = spawnSync(process.execPath, ['--test', '--test-timeout=120000', join(copy, test)], {
    cwd: copy,
    stdio: 'ignore',
    timeout: TIMEOUT,
  });
  return status !== 0;
}

function isFound({ file, from, to, test }: Sabotage): boolean {
  const path = join(copy, file);
  const right = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    right.replace(from, () => to),
  );
  try {
    return fails(test);
  } finally {
    writeFileSync(path, right);
  }
}

const wanted = SABOTAGES.filter(({ promise }) =>
  promise.toLowerCase().includes((process.argv[2] ?? '').toLowerCase()),
);
for (const sabotage of wanted) {
  const found = isFound(sabotage);
  if (!found) process.exitCode = 1;
  process.stdout.write(`${found ? 'found    ' : 'NOT FOUND'}  ${sabotage.promise}: ${sabotage.change}\n`);
}
for (const test of new Set(wanted.map((each) => each.test))) {
  if (!fails(test)) continue;
  process.exitCode = 1;
  process.stdout.write(`FAILS      ${test}, without any change\n`);
}
