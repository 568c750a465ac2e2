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

/** What neither needs: the service, the database, the doors, and every other command. */
const NEVER =
  /^(?:app\/(?!package-info\.ts)|sql\/|rest\/|graphql|management\/|webhook\/|config\/load\.ts|cli\/(?:access|audit|database|deliveries\.ts|health|init|send|users))/;

test('the version is shown without the configuration and the service', () => {
  const files = loadedBy('--version');
  assert.deepEqual(
    files.filter((file) => NEVER.test(file) || file.startsWith('config/options')),
    [],
  );
  assert.ok(files.includes('cli/version.ts'));
});

test('help loads the table of options and the usages, and no command', () => {
  for (const args of [['--help'], ['send', '--help']]) {
    const files = loadedBy(...args);
    assert.deepEqual(
      files.filter((file) => NEVER.test(file)),
      [],
      args.join(' '),
    );
  }
});
