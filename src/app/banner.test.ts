import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { readGitInfo } from './build-info.ts';
import { doorAddresses } from './console.ts';
import { loadConfig } from './load-config.ts';
import { banner, commandToTry } from './serve.ts';

describe('banner', () => {
  const URLS = {
    graphql: 'http://127.0.0.1:4000',
    rest: 'http://127.0.0.1:8000',
    management: 'http://127.0.0.1:8080',
    webhook: 'http://127.0.0.1:3000',
  };

  async function addresses(urls: Partial<typeof URLS>, env: Readonly<Record<string, string>> = {}) {
    await using folder = await temporaryFolder();
    return doorAddresses(urls, await loadConfig({ argv: [], env, cwd: folder.path }));
  }

  test('each door has the address at which it can be used', async () => {
    assert.deepEqual(Object.fromEntries(await addresses(URLS)), {
      graphql: 'http://127.0.0.1:4000/graphql',
      rest: 'http://127.0.0.1:8000/users',
      management: 'http://127.0.0.1:8080/actuator',
      webhook: 'http://127.0.0.1:3000/webhook',
    });
  });

  test('paths that were configured are in the addresses, and closed doors are not', async () => {
    const env = { GRAPHQL_PATH: '/api/graph', MANAGEMENT_BASE_PATH: '/manage' };
    const { graphql, management } = URLS;
    assert.deepEqual(Object.fromEntries(await addresses({ graphql, management }, env)), {
      graphql: 'http://127.0.0.1:4000/api/graph',
      management: 'http://127.0.0.1:8080/manage',
    });
  });

  test('the command to try is for the first open door that needs no credentials', async () => {
    const { graphql, rest, management, webhook } = URLS;
    assert.equal(commandToTry(await addresses(URLS)), 'curl http://127.0.0.1:8000/users');
    assert.equal(commandToTry(await addresses({ rest, webhook })), 'curl http://127.0.0.1:8000/users');
    const query = "curl 'http://127.0.0.1:4000/graphql?query=%7Bhello%7D'";
    assert.equal(commandToTry(await addresses({ graphql, management, webhook })), query);
    assert.equal(commandToTry(await addresses({ management, webhook })), 'curl http://127.0.0.1:8080/livez');
    const base = await addresses({ management }, { MANAGEMENT_BASE_PATH: '/manage/deep' });
    assert.equal(commandToTry(base), 'curl http://127.0.0.1:8080/livez', 'outside the base path');
    assert.equal(
      commandToTry(await addresses({ webhook })),
      `curl -d '{"event":"new_commit","data":{}}' http://127.0.0.1:3000/webhook`,
    );
  });

  test('a door on a Unix socket is shown by its path', async () => {
    const rest = 'unix:/run/rest.sock';
    assert.deepEqual(Object.fromEntries(await addresses({ rest })), { rest });
    assert.equal(
      commandToTry(await addresses({ rest })),
      'curl --unix-socket /run/rest.sock http://localhost/users',
    );
    const { webhook } = URLS;
    assert.match(commandToTry(await addresses({ rest, webhook })), /http:\/\/127.0.0.1:3000\/webhook$/);
  });

  test('the banner names version, time, every open door and what to do next, in plain lines', async () => {
    const text = banner('1.2.3', 123.6, await addresses(URLS));
    const lines = text.split('\n');
    assert.equal(lines[0], 'Portico 1.2.3 is ready (124 ms)');
    for (const [title, address] of Object.entries({
      GraphQL: 'http://127.0.0.1:4000/graphql',
      REST: 'http://127.0.0.1:8000/users',
      Management: 'http://127.0.0.1:8080/actuator',
      Webhook: 'http://127.0.0.1:3000/webhook',
      'Try:': 'curl http://127.0.0.1:8000/users',
      'Stop:': 'Ctrl+C',
    })) {
      const line = lines.find((each) => each.trimStart().startsWith(title));
      assert.equal(line, `  ${title.padEnd(11)}${address}`, 'addresses stand below each other');
    }
    assert.match(text, /^[\n\x20-\x7e]+$/);
  });

  test('a closed door is not in the banner', async () => {
    const { rest } = URLS;
    assert.doesNotMatch(banner('1.2.3', 1, await addresses({ rest })), /GraphQL|Management|Webhook/);
  });

  test('an address that nobody can open is shown as one that can be opened', async () => {
    const urls = { rest: 'http://0.0.0.0:8000', management: 'http://[::]:8080' };
    const text = banner('1.2.3', 1, await addresses(urls, { MANAGEMENT_BASE_PATH: '/manage' }), {
      network: '10.0.0.7',
    });
    assert.match(text, /^ {2}REST {7}http:\/\/localhost:8000\/users$/m);
    assert.match(text, /^ {2}Management http:\/\/localhost:8080\/manage$/m);
    assert.match(text, /^ {2}Network {4}the same ports at 10\.0\.0\.7$/m);
    assert.match(text, /^ {2}Try: {7}curl http:\/\/localhost:8000\/users$/m);
    const loopback = banner('1.2.3', 1, await addresses(URLS), { network: '10.0.0.7' });
    assert.doesNotMatch(loopback, /Network/);
  });

  test('the console has a line of its own where it is served', async () => {
    const listening = await addresses(URLS);
    assert.doesNotMatch(banner('1.2.3', 1, listening), /Console/);
    const console = 'http://0.0.0.0:8080/actuator/console';
    assert.match(
      banner('1.2.3', 1, listening, { console }),
      /^ {2}Console {4}http:\/\/localhost:8080\/actuator\/console$/m,
    );
    const closed = 'Set it to open them';
    assert.match(banner('1.2.3', 1, listening, { console, closed }), /^ {2}Set it to open them$/m);
    assert.doesNotMatch(banner('1.2.3', 1, listening, { closed }), /open them/, 'without a console');
  });
});

describe('git info', () => {
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
});
