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
  assert.equal(run.status, 0, run.stderr);
  const files = run.stderr.split('\n').flatMap((url) => url.split('/src/').slice(1));
  assert.ok(files.includes('main.ts'), run.stderr);
  return files;
}

const COMMON = /^(?:main\.ts|core\/|config\/config-error\.ts|commands\/(?:argv|terminal)\/)/;

test('the version is shown without the configuration and the service', () => {
  const files = loadedBy('--version').filter((file) => !COMMON.test(file));
  assert.deepEqual(files.sort(), ['app/package-info.ts', 'commands/version.ts']);
});

test('help loads the table of options and the usages, and no command', () => {
  const help =
    /^(?:commands\/help(?:\.ts|\/)|config\/options\/|http\/auth\/password-hash\.ts|users\/search-level\.ts|webhook\/sources\/defaults\.ts)/;
  for (const args of [['--help'], ['send', '--help']]) {
    const files = loadedBy(...args).filter((file) => !COMMON.test(file) && !help.test(file));
    assert.deepEqual(files, [], args.join(' '));
  }
});
