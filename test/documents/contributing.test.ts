import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runShown, runShownUntil, shownCommand } from '../support/shown-commands.ts';
import { ROOT } from './documents.ts';

const DEVELOP = shownCommand('CONTRIBUTING.md', /^npm run dev /);
const PATH_FIRST = shownCommand('CONTRIBUTING.md', /^export PATH=/);
const ONE_FILE = shownCommand('CONTRIBUTING.md', /^node --test src\//);
const ONE_CHECK = shownCommand('CONTRIBUTING.md', /^node --test --test-name-pattern=/);

const place = {
  cwd: ROOT,
  // One of the files that the guide asks for; all of them take long.
  names: { '*.test.ts': 'tls.test.ts' },
};

for (const [shown, passed] of [
  [ONE_FILE, /^ℹ pass [1-9]/m],
  [ONE_CHECK, /^ *✔ REST-21 /m],
] as const) {
  test(`the guide runs tests: ${shown.command}`, async () => {
    const command = `${PATH_FIRST.command}\n${shown.command}`;
    const { code, stdout } = await runShown({ ...shown, command }, place);
    assert.equal(code, 0, stdout);
    assert.match(stdout, passed);
    assert.doesNotMatch(stdout, /^ℹ fail [1-9]/m);
  });
}

test('the guide starts the service from the sources', async () => {
  const ports = { GRAPHQL_PORT: '0', REST_PORT: '0', MANAGEMENT_PORT: '0', PORT: '0' };
  const env = { ...ports, DATABASE_URL: 'sqlite::memory:', SHUTDOWN_PRE_STOP_DELAY: '0' };
  // The script itself, by npm.
  const command = `${PATH_FIRST.command}\ncommand ${DEVELOP.command}`;
  await runShownUntil({ ...DEVELOP, command }, { cwd: ROOT, env }, (said) => said.includes('"msg":"ready"'));
});
