import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { SOURCE_MAIN } from '../support/portico-process.ts';

/** Writes the URL of every module that is loaded to standard error. */
const RECORD = `
import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    process.stderr.write(url + '\\n');
    return next(url, context);
  },
});
`;

/** The sources that a command loads, as paths below src. */
function loadedBy(...args: readonly string[]): readonly string[] {
  const hooks = `data:text/javascript,${encodeURIComponent(RECORD)}`;
  const run = spawnSync(process.execPath, ['--import', hooks, SOURCE_MAIN, ...args], { encoding: 'utf8' });
  assert.equal(run.status, args.includes('--nonsense') ? 2 : 0, run.stderr);
  const files = run.stderr.split('\n').flatMap((url) => url.split('/src/').slice(1));
  assert.ok(files.includes('main.ts'), run.stderr);
  return files;
}

/** What no help needs: the service, the doors, and the configuration of a service. */
const SERVICE = /^(?:app\/serve\.ts|rest\/|graphql|management\/|config\/load\.ts)/;
/** The files of commands. */
const COMMANDS = /^cli\/(?:\w+\/|(?!command|help|terminal)[\w-]+\.ts)/;

const without = (files: readonly string[], ...patterns: readonly RegExp[]) =>
  files.filter((file) => patterns.some((pattern) => pattern.test(file)));

test('the version and the list of commands load neither the service nor a database nor a command', () => {
  for (const args of [['--version'], ['--help'], ['help', 'serve']]) {
    assert.deepEqual(
      without(loadedBy(...args), SERVICE, COMMANDS, /^(?:sql|webhook|app)\//),
      [],
      args.join(' '),
    );
  }
  assert.deepEqual(without(loadedBy('--version'), /^config\/options/), []);
});

test('the help of a command loads that command alone', () => {
  const files = loadedBy('send', '--help');
  assert.ok(files.includes('cli/send.ts'));
  assert.deepEqual(
    without(files, /^(?:app\/serve\.ts|graphql|management\/)/, /^cli\/(?:database|users|tokens|init|hash)/),
    [],
  );
});

test('serve loads no other command', () => {
  const files = loadedBy('serve', '--nonsense');
  assert.ok(files.includes('app/serve.ts'));
  assert.deepEqual(without(files, COMMANDS), []);
});
