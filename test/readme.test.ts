import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from './support/free-port.ts';
import { startPortico } from './support/portico-process.ts';
import { startTestService } from './support/service.ts';
import { runShown, type ShownCommand, shownCommand, shownCommands } from './support/shown-commands.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { waitFor } from './support/wait-for.ts';

const ROOT = join(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const STORY = shownCommands('README.md', /^curl /);
const GUIDE = readFileSync(join(ROOT, 'docs/TOUR.md'), 'utf8');
const TOUR = shownCommands('docs/TOUR.md', /^curl /);
const SECRET = shownCommand('docs/TOUR.md', /^export GITHUB_WEBHOOK_SECRET=/);
const SEND = shownCommand('docs/TOUR.md', /^npm run -s portico -- send /);
const LIST = shownCommand('docs/TOUR.md', /^npm run -s portico -- deliveries list$/);

/** The text of the tour below a heading; that of list items without their indentation. */
function section(heading: string): string {
  const [, text = ''] = GUIDE.split(`\n## ${heading}\n`);
  return (text.split('\n## ')[0] ?? '').replace(/^ {3}/gm, '');
}

test('the two commands stand at the top, and CI runs what they say', () => {
  assert.match(README, /^# Portico\n\n.+\n\n```sh\nnpm ci && npm start\nnpm ci && npm test\n```/);
  const ci = readFileSync(join(ROOT, '.ci/run'), 'utf8');
  for (const line of ['npm ci', 'npm run check', 'npm test']) assert.match(ci, new RegExp(`^${line}$`, 'm'));
});

test('the README leads from its declaration to a payment that a webhook wrote', async () => {
  const [, module = ''] = /```ts\n(.*?)```/s.exec(README) ?? [];
  const port = String(await freePort());
  await using service = await startTestService({
    database: 'file',
    module: module
      .replace("'portico'", JSON.stringify(join(ROOT, 'src/index.ts')))
      .replace('127.0.0.1:8000', `127.0.0.1:${port}`),
    env: { REST_PORT: port },
    listens: true,
  });
  const run = async (shown: ShownCommand) =>
    (await runShown(shown, { cwd: service.folder, urls: service.urls })).stdout.trimEnd();
  assert.equal(STORY.length, 4);
  for (const shown of STORY) {
    // The handler runs after the acknowledgement.
    if (shown.command.includes('/payments?'))
      await waitFor('the row', async () => (await run(shown)) === shown.output);
    else assert.equal(await run(shown), shown.output, shown.command);
  }
});

test('every command of the tour prints what it shows', async () => {
  await using service = await startTestService({ database: 'file' });
  await service.listen();
  assert.ok(TOUR.length > 10);
  for (const shown of TOUR) {
    const { stdout } = await runShown(shown, { cwd: service.folder, urls: service.urls });
    assert.equal(stdout.trimEnd(), shown.output, shown.command);
  }
});

test('a push of GitHub arrives in the way that the tour shows', async () => {
  const text = section('Receive a GitHub push in five minutes');
  const [, module = ''] = /```ts\n(.*?)```/s.exec(text) ?? [];
  const [, name = ''] = /^export (\w+)=<the secret>$/.exec(SECRET.command) ?? [];
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.mts'), module);
  const env = { [name]: 'a secret' };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  const port = { PORT: new URL(portico.urls.webhook ?? '').port };
  const answer = (shown: ShownCommand) => runShown(shown, { cwd: folder.path, env: { ...env, ...port } });

  assert.equal((await answer(SEND)).stdout.trimEnd(), SEND.output);
  const said = /The terminal of the service says `(.+?)`/.exec(text)?.[1];
  await waitFor('the handler to log', () => portico.logs().some(({ msg }) => msg === said));
  const alike = (shown: string) =>
    shown
      .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/, 'ID')
      .replace(/(done +)\d+s/, '$1TIME')
      .replace(/ +/g, ' ');
  await waitFor('the delivery to be done', async () => (await answer(LIST)).stdout.includes('done'));
  assert.equal(alike((await answer(LIST)).stdout.trimEnd()), alike(LIST.output ?? ''));
});

test('every link to a file of the project leads somewhere', () => {
  for (const [, target = ''] of README.matchAll(/\]\((?!http|#)([^)#]+)/g)) {
    assert.ok(readFileSync(join(ROOT, target)).length > 0, target);
  }
});

test('the generated parts of the documents are what the code describes', () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/docs.ts'), '--check']);
});
