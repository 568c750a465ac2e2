import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { inFull } from '../support/proof-settings.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const { version, scripts, devDependencies } = JSON.parse(read('package.json'));

interface Step {
  readonly run?: string;
  readonly if?: string;
  readonly with?: Readonly<Record<string, string>>;
}

test('the workflow of a release runs what is there, and publishes on a tag alone', () => {
  const { jobs } = parse(read('.github/workflows/release.yml'));
  const steps: readonly Step[] = jobs.release.steps;
  const commands = steps.flatMap(({ run = [] }) => run);
  assert.deepEqual(commands.slice(0, 3), ['npm ci', 'npm run check', 'npm test']);
  for (const command of commands) {
    const [, script, file] = /^npm run (\S+)|^node (\S+)/.exec(command) ?? [];
    if (script !== undefined) assert.ok(script in scripts, command);
    if (file !== undefined) assert.ok(existsSync(join(ROOT, file)), command);
  }
  for (const { run = '', if: when } of steps) {
    if (!run.includes('release.ts')) continue;
    assert.equal(when, `github.ref_type ${run.includes('--dry-run') ? '!=' : '=='} 'tag'`);
  }
  assert.ok(steps.some((step) => step.with?.['node-version'] === devDependencies.node));
});

const noGit = existsSync(join(ROOT, '.git')) ? false : 'needs a checkout of Git';
test('a release needs a version in the changelog, on a tag of it', { skip: noGit }, () => {
  const { stderr } = spawnSync(process.execPath, ['scripts/release.ts', '--check'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const tags = execFileSync('git', ['tag', '--points-at', 'HEAD'], { cwd: ROOT, encoding: 'utf8' });
  const isTagged = tags.split('\n').includes(`v${version}`);
  assert.equal(stderr.includes(`HEAD has no tag v${version}; run: git tag v${version}\n`), !isTagged);
  assert.equal(stderr.includes('CHANGELOG.md'), !read('CHANGELOG.md').includes(`\n## ${version}`));
  assert.equal(spawnSync(process.execPath, ['scripts/release.ts', '--publsh'], { cwd: ROOT }).status, 2);
});

const skip = inFull ? false : 'only npm run proof builds the package again';
test('a rehearsal builds and packs the package, and publishes nothing', { skip }, () => {
  const words = ['scripts/release.ts', '--dry-run', '--image', 'registry.example.com/portico'];
  const said = execFileSync(process.execPath, words, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    // npm asks a registry for the published versions, and goes on without an answer.
    env: { ...process.env, npm_config_fetch_retries: '0' },
  });
  assert.match(said, new RegExp(`\\+ portico@${version}`));
  assert.match(said, new RegExp(`would run: docker .* --tag registry\\.example\\.com/portico:${version} `));
});
