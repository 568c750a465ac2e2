import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkShownRequests, shownCommand, shownCommands, startExample } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SERVE = shownCommand('examples/rest-plugin/README.md', /^npm exec -- node /);
const REQUESTS = shownCommands('examples/rest-plugin/README.md', /^curl /);

test('what the README of the example shows is what comes back, and is there after a stop', async () => {
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: `sqlite:${join(folder.path, 'users.db')}` };
  {
    await using example = await startExample(SERVE, { env });
    await checkShownRequests(REQUESTS, { rest: example.origin });
    assert.equal(await example.stop(), 0);
  }
  await using example = await startExample(SERVE, { env });
  const { data } = (await (await fetch(`${example.origin}/api/users`)).json()) as {
    data: readonly unknown[];
  };
  assert.equal(data.length, 2);
});
