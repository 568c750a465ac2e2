import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { readGitInfo } from './git-info.ts';

const TIME = '2026-03-04T05:06:07.000Z';

/** A repository with one commit, made by git itself. */
async function repository() {
  const folder = await temporaryFolder();
  const root = join(folder.path, 'root');
  await mkdir(root);
  const git = (...words: readonly string[]) =>
    execFileSync('git', words, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        PATH: process.env.PATH,
        HOME: folder.path,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'Ann',
        GIT_AUTHOR_EMAIL: 'ann@example.org',
        GIT_AUTHOR_DATE: '2020-01-01T00:00:00Z',
        GIT_COMMITTER_NAME: 'Bob <b> 1 +0000',
        GIT_COMMITTER_EMAIL: 'bob@example.org',
        GIT_COMMITTER_DATE: '2026-03-04T07:06:07+0200',
      },
    }).trim();
  git('init', '--quiet', '--initial-branch=feature/one');
  git('commit', '--quiet', '--allow-empty', '--message=first');
  const id = git('rev-parse', 'HEAD').slice(0, 7);
  return { root, git, id, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

test('the branch, and the commit with its time', async () => {
  await using made = await repository();
  const { root, git, id } = made;
  const expected = { branch: 'feature/one', commit: { id, time: TIME } };
  assert.deepEqual(await readGitInfo(root), expected);
  git('pack-refs', '--all');
  git('gc', '--quiet', '--prune=now');
  assert.deepEqual(await readGitInfo(root), expected);
});

test('a commit without a branch', async () => {
  await using made = await repository();
  const { root, git, id } = made;
  git('commit', '--quiet', '--allow-empty', '--message=second');
  git('checkout', '--quiet', '--detach', id);
  assert.deepEqual(await readGitInfo(root), { commit: { id, time: TIME } });
});

test('a linked checkout', async () => {
  await using made = await repository();
  const { root, git, id } = made;
  const linked = join(root, '../linked');
  git('worktree', 'add', '--quiet', '-b', 'other', linked);
  assert.deepEqual(await readGitInfo(linked), { branch: 'other', commit: { id, time: TIME } });
});

test('a checkout that Git cannot read, one without a commit, and no checkout', async () => {
  await using made = await repository();
  const { root } = made;
  await rm(join(root, '.git/objects'), { recursive: true });
  assert.equal(await readGitInfo(root), undefined);

  await using folder = await temporaryFolder();
  assert.equal(await readGitInfo(folder.path), undefined);
  assert.equal(await readGitInfo(join(folder.path, 'missing')), undefined);
  execFileSync('git', ['init', '--quiet'], { cwd: folder.path });
  assert.equal(await readGitInfo(folder.path), undefined);
});

test('a folder inside a checkout is none', async () => {
  await using made = await repository();
  const inner = join(made.root, 'node_modules');
  await mkdir(inner);
  assert.equal(await readGitInfo(inner), undefined);
});

test('a machine without git, and one in which Git runs a hook', async (t) => {
  await using made = await repository();
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
    delete process.env.GIT_DIR;
  });
  process.env.GIT_DIR = '/nowhere';
  assert.equal((await readGitInfo(made.root))?.commit.id, made.id);
  process.env.PATH = made.root;
  assert.equal(await readGitInfo(made.root), undefined);
});
