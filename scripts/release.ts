// Publishes the version of package.json: the package to a registry of npm, and the image. Run it on its tag.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const USAGE = `node scripts/release.ts [--check | --dry-run] [--image <name>]

  --check    says what a release of HEAD lacks, and does nothing
  --dry-run  checks and builds everything, and publishes nothing; neither a tag nor Docker is needed
  --image    also builds and pushes this image, such as registry.example.com/portico, with the version as its tag
`;

/** Exit codes: 0 published, or ready to be; 1 not ready; 2 wrong call. */
function main(): number {
  const flags = readFlags();
  if (flags === undefined) return say(USAGE, 2);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const isDry = flags['dry-run'];
  const problems = isDry ? [] : problemsOf(version);
  if (problems.length > 0) return say(`${problems.join('\n')}\n`, 1);
  if (flags.check) return 0;
  const folder = mkdtempSync(join(tmpdir(), 'portico-release-'));
  // A command that fails ends the process.
  process.once('exit', () => rmSync(folder, { recursive: true }));
  run(process.execPath, ['scripts/build.ts', folder]);
  run('npm', ['publish', folder, '--access', 'public', ...(isDry ? ['--dry-run'] : ['--provenance'])]);
  const { image } = flags;
  if (image !== undefined) {
    const tag = `${image}:${version}`;
    const build = ['buildx', 'build', '--file', 'deploy/Dockerfile', '--tag', tag];
    const words = [...build, '--platform', 'linux/amd64,linux/arm64', '--push', '.'];
    if (isDry) say(`would run: docker ${words.join(' ')}\n`, 0);
    else run('docker', words);
  }
  return 0;
}

/** What is missing for a release, a line each. */
function problemsOf(version: string): readonly string[] {
  const tag = `v${version}`;
  const problems: string[] = [];
  if (git('status', '--porcelain') !== '') problems.push('The working tree has changes; commit them first.');
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(tag))
    problems.push(`HEAD has no tag ${tag}; run: git tag ${tag}`);
  const log = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  if (!log.includes(`\n## ${version}`)) problems.push(`CHANGELOG.md has no heading "## ${version}"`);
  return problems;
}

function git(...words: readonly string[]): string {
  return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim();
}

/** Runs a command and shows what it says; the release ends with its exit code if that is not 0. */
function run(command: string, words: readonly string[]): void {
  const { status } = spawnSync(command, words, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

function readFlags() {
  try {
    const options = {
      check: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      image: { type: 'string' },
    } as const;
    return parseArgs({ options }).values;
  } catch {
    return undefined;
  }
}

function say(text: string, code: number): number {
  (code === 0 ? process.stdout : process.stderr).write(text);
  return code;
}

process.exitCode = main();
