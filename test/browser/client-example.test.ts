import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { startConfigExample } from '../support/config-example.ts';
import { freePort } from '../support/free-port.ts';
import { runPortico } from '../support/portico-process.ts';
import { shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { launchBrowser, root, skip } from './support.ts';

const START = shownCommand('examples/browser-client/README.md', /^npm start -- /);
const SERVE = shownCommand('examples/browser-client/README.md', /^npm exec -- esbuild /);

/** Serves the page by the command of the README at another host, which is another site to a browser. */
async function servePage(host: string) {
  const address = `${host}:${await freePort()}`;
  const args = SERVE.command.replace('localhost:9000', address).split(' ').slice(4);
  const child = spawn(join(root, 'node_modules/.bin/esbuild'), args, { cwd: root });
  const closed = once(child, 'close');
  let said = '';
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  await waitFor('the page to be served', () => {
    assert.equal(child.exitCode, null, said);
    return said.includes(`http://${address}/`);
  });
  return {
    origin: `http://${address}`,
    async [Symbol.asyncDispose]() {
      // It serves as long as it has an input.
      child.stdin.end();
      await closed;
    },
  };
}

test('pages of another origin list, create, change and follow rows, also over a restart and a new database', {
  skip,
}, async () => {
  await using pages = await servePage('127.0.0.2');
  await using folder = await temporaryFolder();
  const start = (database: string) =>
    startConfigExample(START, {
      INTERFACES: 'rest',
      REST_PORT: port,
      REST_CORS_ORIGINS: pages.origin,
      DATABASE_URL: `sqlite:${join(folder.path, database)}`,
    });
  const port = String(await freePort());
  await using browser = await launchBrowser(['127.0.0.1', '127.0.0.2']);
  await using context = await browser.newContext();
  const open = async () => {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`${pages.origin}/?portico=http://127.0.0.1:${port}`);
    await page.getByRole('status').filter({ hasText: 'Following' }).waitFor();
    const note = (text: string, checked: boolean) =>
      page.getByRole('checkbox', { name: text, exact: true, checked });
    return {
      add: async (text: string) => {
        await page.getByLabel('New note').fill(text);
        await page.getByRole('button', { name: 'Add' }).click();
      },
      shows: (text: string, checked = false) => note(text, checked).waitFor(),
      toggle: (text: string) => note(text, false).click(),
      says: (text: string) => page.getByRole('status').filter({ hasText: text }).waitFor(),
      notes: () => page.getByRole('listitem').allInnerTexts(),
    };
  };
  await using first = await start('first.db');
  const one = await open();
  await one.add('Buy <b>milk</b>');
  await one.shows('Buy <b>milk</b>');
  const other = await open();
  await other.shows('Buy <b>milk</b>');
  await other.toggle('Buy <b>milk</b>');
  await one.shows('Buy <b>milk</b>', true);
  await one.add('x'.repeat(201));
  await one.says('INVALID_ROW');
  first.child.kill('SIGTERM');
  assert.equal(await first.exited(), 0);

  await using second = await start('first.db');
  const headers = { authorization: 'Bearer demo-token-of-the-page' };
  const body = '{"text":"while both are away"}';
  const made = await fetch(`${second.urls.rest}/notes`, { method: 'POST', headers, body });
  assert.equal(made.status, 201);
  for (const page of [one, other]) await page.shows('while both are away');
  second.child.kill('SIGTERM');
  assert.equal(await second.exited(), 0);

  // The events that they know are gone, so they read the list.
  await using _ = await start('second.db');
  for (const page of [one, other]) {
    await waitFor('the list to be read', async () => (await page.notes()).length === 0);
  }
  await one.add('new');
  await other.shows('new');
});

test('the types of the example are those of its declaration', async () => {
  const folder = 'examples/browser-client';
  const args = [
    'types',
    '--check',
    '--config',
    `${folder}/portico.config.ts`,
    '--out',
    `${folder}/portico.d.ts`,
  ];
  const { code, stderr } = await runPortico(args, { cwd: root });
  assert.deepEqual([code, stderr], [0, '']);
});
