import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createService } from '../src/app/service.ts';
import { loadConfig } from '../src/config/load.ts';
import { CHILD_ENVIRONMENT } from './support/child-environment.ts';
import { type GuideCommand, guideCommands } from './support/guide-commands.ts';
import { captureLog } from './support/log-capture.ts';
import { MAIN, startPortico } from './support/portico-process.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { waitFor } from './support/wait-for.ts';

const ROOT = join(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const DEFAULT_PORTS = { graphql: 4000, rest: 8000, management: 8080, webhook: 3000 } as const;
const FREE_PORTS = {
  GRAPHQL_PORT: '0',
  REST_PORT: '0',
  MANAGEMENT_PORT: '0',
  PORT: '0',
  SHUTDOWN_LINGER: '0',
};

/** The text below a heading; that of list items without their indentation. */
function section(heading: string): string {
  const [, text = ''] = README.split(`\n## ${heading}\n`);
  return (text.split('\n## ')[0] ?? '').replace(/^ {3}/gm, '');
}

const run = (command: string, env: NodeJS.ProcessEnv = process.env, cwd = ROOT) =>
  promisify(execFile)('sh', ['-c', command], { env, cwd });

test('the two commands stand at the top, and CI runs what they say', () => {
  assert.match(README, /^# Portico\n\n.+\n\n```sh\nnpm ci && npm start\nnpm ci && npm test\n```/);
  const ci = readFileSync(join(ROOT, '.ci/run'), 'utf8');
  for (const line of ['npm ci', 'npm run check', 'npm test']) assert.match(ci, new RegExp(`^${line}$`, 'm'));
});

test('every command of the tour prints what the README shows', async () => {
  await using folder = await temporaryFolder();
  const config = await loadConfig({ argv: [], env: FREE_PORTS, cwd: folder.path });
  const settings = { ...config.settings, 'database.url': `sqlite:${join(folder.path, 'portico.db')}` };
  await using service = await createService({ ...config, settings }, { logStream: captureLog().stream });
  const urls = await service.listen();
  const commands = guideCommands(section('A tour'));
  assert.ok(commands.length > 10);
  for (const { command, output } of commands) {
    let here = command;
    for (const door of ['graphql', 'rest', 'management', 'webhook'] as const) {
      here = here.replace(`http://127.0.0.1:${DEFAULT_PORTS[door]}`, urls[door] ?? '');
    }
    assert.equal((await run(here)).stdout.trimEnd(), output, command);
  }
});

test('a push of GitHub arrives in the way that the README shows', async () => {
  const text = section('Receive a GitHub push in five minutes');
  const [, module = ''] = /```ts\n(.*?)```/s.exec(text) ?? [];
  const [send, list] = guideCommands(text) as [GuideCommand, GuideCommand];
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.mts'), module);
  const secret = { GITHUB_WEBHOOK_SECRET: 'a secret' };
  await using portico = startPortico({ cwd: folder.path, env: secret });
  await portico.ready();
  const here = ({ command }: GuideCommand) =>
    command.replace('npm run -s portico --', `'${process.execPath}' '${MAIN}'`);
  const port = { PORT: new URL(portico.urls.webhook ?? '').port };
  const answer = (of: GuideCommand) =>
    run(here(of), { ...CHILD_ENVIRONMENT, ...secret, ...port }, folder.path);

  assert.equal((await answer(send)).stdout.trimEnd(), send.output);
  const said = /The terminal of the service says `(.+?)`/.exec(text)?.[1];
  await waitFor('the handler to log', () => portico.logs().some(({ msg }) => msg === said));
  const alike = (shown: string) =>
    shown
      .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/, 'ID')
      .replace(/(done +)\d+s/, '$1TIME')
      .replace(/ +/g, ' ');
  await waitFor('the delivery to be done', async () => (await answer(list)).stdout.includes('done'));
  assert.equal(alike((await answer(list)).stdout.trimEnd()), alike(list.output));
});

test('every link to a file of the project leads somewhere', () => {
  for (const [, target = ''] of README.matchAll(/\]\((?!http|#)([^)#]+)/g)) {
    assert.ok(readFileSync(join(ROOT, target)).length > 0, target);
  }
});

test('the generated parts of the documents are what the code describes', () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/docs.ts'), '--check']);
});
