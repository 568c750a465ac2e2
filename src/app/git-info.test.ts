import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
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
  const { root, id } = made;
  assert.deepEqual(readGitInfo(root), { branch: 'feature/one', commit: { id, time: TIME } });
});

test('packed refs and packed objects', async () => {
  await using made = await repository();
  const { root, git, id } = made;
  git('pack-refs', '--all');
  git('gc', '--quiet', '--prune=now');
  assert.deepEqual(readGitInfo(root), { branch: 'feature/one', commit: { id, time: TIME } });
});

test('the right one of many packed commits', async () => {
  await using made = await repository();
  const { root, git } = made;
  const ids = Array.from({ length: 30 }, (_, i) => {
    git('commit', '--quiet', '--allow-empty', `--message=${i}`);
    return git('rev-parse', 'HEAD');
  });
  git('repack', '-adq', '--window=0');
  for (const id of ids) {
    git('checkout', '--quiet', '--detach', id);
    assert.deepEqual(readGitInfo(root), { commit: { id: id.slice(0, 7), time: TIME } });
  }
});

test('a linked checkout', async () => {
  await using made = await repository();
  const { root, git, id } = made;
  const linked = join(root, '../linked');
  git('worktree', 'add', '--quiet', '-b', 'other', linked);
  assert.deepEqual(readGitInfo(linked), { branch: 'other', commit: { id, time: TIME } });
});

test('a commit that cannot be read has no time', async () => {
  await using made = await repository();
  const { root, id } = made;
  await rm(join(root, '.git/objects'), { recursive: true });
  assert.deepEqual(readGitInfo(root), { branch: 'feature/one', commit: { id } });
  await mkdir(join(root, '.git/objects/pack'), { recursive: true });
  await writeFile(join(root, '.git/objects/pack/pack-x.idx'), 'no index');
  assert.deepEqual(readGitInfo(root), { branch: 'feature/one', commit: { id } });
});

test('no checkout, and one without a commit, tell nothing', async () => {
  await using folder = await temporaryFolder();
  assert.equal(readGitInfo(folder.path), undefined);
  await mkdir(join(folder.path, '.git'));
  for (const head of ['ref: refs/heads/main\n', 'nonsense', '']) {
    await writeFile(join(folder.path, '.git/HEAD'), head);
    assert.equal(readGitInfo(folder.path), undefined, head);
  }
});
