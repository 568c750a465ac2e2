import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { guideCommands } from '../support/guide-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { openDoor } from './support/door.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/GRAPHQL.md'), 'utf8');

test('every command of the guide prints what it shows, in this order', async () => {
  await using folder = await temporaryFolder();
  const run = async (command: string) =>
    (await promisify(execFile)('sh', ['-c', command], { cwd: folder.path })).stdout.trimEnd();
  const all = guideCommands(GUIDE);
  // The trusted documents are there before the start that names them.
  for (const { command } of all) if (command.startsWith('echo ')) await run(command);
  const setting = all.find(({ command }) => command.endsWith(' npm start'))?.command;
  const file = /^GRAPHQL_DOCUMENTS=(\S+) npm start$/.exec(setting ?? '')?.[1] ?? '';
  await using door = await openDoor({ env: { GRAPHQL_DOCUMENTS: join(folder.path, file) } });
  const requests = all.filter(({ command }) => command.startsWith('curl '));
  assert.ok(requests.length >= 5);
  for (const { command, output } of requests) {
    assert.equal(await run(command.replace('http://127.0.0.1:4000/graphql', door.url)), output, command);
  }
});
