import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  runShown,
  runShownUntil,
  settingsOf,
  shownCommand,
  shownCommands,
} from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ask, openDoor } from './support/door.ts';

const REQUESTS = shownCommands('docs/GRAPHQL.md', /^curl -sG? .*(?:persistedQuery|documentId)/);
const DOCUMENTS = shownCommand('docs/GRAPHQL.md', /^echo /);
const SERVE = shownCommand('docs/GRAPHQL.md', /^GRAPHQL_DOCUMENTS=.* npm start$/);
const SUBSCRIBE = shownCommands('docs/GRAPHQL.md', /^(?:node --input-type|curl -sN) ?/);

test('every request of the guide prints what it shows, in this order', async () => {
  await using folder = await temporaryFolder();
  // The trusted documents are there before the start that names them.
  await runShown(DOCUMENTS, { cwd: folder.path });
  const { GRAPHQL_DOCUMENTS = '' } = settingsOf(SERVE);
  await using door = await openDoor({ env: { GRAPHQL_DOCUMENTS: join(folder.path, GRAPHQL_DOCUMENTS) } });
  assert.ok(REQUESTS.length >= 5);
  for (const request of REQUESTS) {
    const { stdout } = await runShown(request, { cwd: folder.path, urls: door.service.urls });
    assert.equal(stdout.trimEnd(), request.output, request.command);
  }
});

test('the subscriptions of the guide tell of a user that is created', async () => {
  await using door = await openDoor();
  const { urls, folder } = door.service;
  await symlink(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'));
  const names = { 'ws://127.0.0.1:4000': (urls.graphql ?? '').replace('http', 'ws') };
  assert.equal(SUBSCRIBE.length, 2);
  for (const command of SUBSCRIBE) {
    // Whenever the subscription has begun, the next user is in it.
    const said = await runShownUntil(command, { cwd: folder, urls, names }, async (text) => {
      await ask(door.url, 'mutation { createUser(name: "Ada", email: "ada@example.com") { id } }');
      return text.includes('userCreated');
    });
    assert.match(said, /name"?: ?["']Ada["']/);
  }
});
