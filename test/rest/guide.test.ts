import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';
import { runShown, settingsOf, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { open } from './support/rest-door.ts';

const GUIDE = join(import.meta.dirname, '../../docs/REST.md');
const SERVE = shownCommand('docs/REST.md', /^REST_SEARCH=.* npm start$/);
const REQUESTS = shownCommands('docs/REST.md', /\bcurl /);
const TABLES = shownCommands('docs/REST.md', /^portico users /);

/** What differs from run to run: cursors, versions and moments. */
const CHANGING =
  /(?<=cursor=)[\w-]{20,}|(?<=")\d{13}(?=")|(?<=W\/")[\d.]+(?=")|(?<=[: ]\d+\.)\d{13}|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g;

/** The text with a name for each of them; equal ones stay equal. */
function steady(text: string): string {
  const seen = new Map<string, string>();
  return text.replace(CHANGING, (found) => {
    const name = seen.get(found) ?? `<${seen.size}>`;
    seen.set(found, name);
    return name;
  });
}

test('every request of the guide prints what it shows, in this order', async () => {
  await using door = await open(settingsOf(SERVE));
  const printed: string[] = [];
  /** What the guide copies from an earlier output is copied here too. */
  const copied = new Map<string, string>();
  for (const request of REQUESTS) {
    const command = request.command.replace(CHANGING, (shown) => copied.get(shown) ?? shown);
    const { service } = door;
    const { code, stdout } = await runShown(
      { ...request, command },
      { cwd: service.folder, urls: service.urls },
    );
    // curl says by 28 that its time for an event stream is over.
    assert.ok(code === 0 || code === 28, command);
    const said = stdout.replaceAll('\r', '').trimEnd();
    printed.push(said);
    const actual = said.match(CHANGING) ?? [];
    for (const [i, shown] of (request.output?.match(CHANGING) ?? []).entries())
      copied.set(shown, actual[i] ?? '');
  }
  const expected = REQUESTS.map(({ output }) => output);
  assert.ok(expected.length > 5);
  assert.equal(steady(printed.join('\n---\n')), steady(expected.join('\n---\n')));
});

test('the start fails with what the guide shows where users share an email', async () => {
  await using door = await open({}, 'file');
  const { folder, databaseUrl, current } = door.service;
  const ids = [];
  for (const email of [
    'ada@example.com',
    'b@example.com',
    'c@example.com',
    'd@example.com',
    'ada@example.com',
  ])
    ids.push(await door.create('Ada', email));
  assert.deepEqual([ids[0], ids[4]], [1, 5]);
  await current.stop();
  const shown = /\n```\n(The database .*)\n```\n/.exec(await readFile(GUIDE, 'utf8'))?.[1];
  const env = { DATABASE_URL: databaseUrl, USERS_UNIQUE_EMAIL: 'true' };
  await assert.rejects(startTestService({ env }), ({ message }: Error) => {
    assert.equal(message.replace(`${folder}/`, ''), shown);
    return true;
  });
});

test('users are imported, exported and listed by the commands of the guide', async () => {
  await using door = await open({}, 'file');
  const { folder, databaseUrl } = door.service;
  const file = join(folder, 'users.csv');
  await writeFile(file, 'name,email\nEdsger,edsger@example.com\nDonald,donald@example.org\n');
  const printed = [];
  for (const command of TABLES) {
    const { code, stdout, stderr } = await runShown(command, {
      cwd: folder,
      env: { DATABASE_URL: databaseUrl },
    });
    assert.equal(code, 0, stderr);
    printed.push(stdout);
  }
  assert.equal(TABLES.length, 3);
  assert.match(printed[2] ?? '', /Edsger +edsger@example\.com/);
  assert.doesNotMatch(printed[2] ?? '', /Donald/);
  assert.match(await readFile(file, 'utf8'), /^1,"?Edsger"?,"?edsger@example\.com/m);
});
