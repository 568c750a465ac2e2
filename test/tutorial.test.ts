import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from './support/free-port.ts';
import { startPortico } from './support/portico-process.ts';
import { runShown, type ShownCommand, settingsOf, shownCommands } from './support/shown-commands.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { waitFor } from './support/wait-for.ts';

const ROOT = join(import.meta.dirname, '..');
const TUTORIAL = readFileSync(join(ROOT, 'docs/TUTORIAL.md'), 'utf8');
const COMMANDS = shownCommands('docs/TUTORIAL.md');

/** What differs between two runs: ids, and the age of a delivery. */
const alike = (text: string) =>
  text
    .trimEnd()
    .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
    .replaceAll(/(dead +)\d+s/g, '$1AGE');

/** The sections, each with its configuration if it has one, and its commands. */
function sections() {
  return TUTORIAL.split(/^## /m)
    .slice(1)
    .map((text) => ({
      module: /```ts\n(.*?)```/s.exec(text)?.[1],
      commands: COMMANDS.filter(({ command }) => text.includes(command)),
    }));
}

test('every step of the tutorial works as it says', async () => {
  await using folder = await temporaryFolder();
  const port = String(await freePort());
  let env: Record<string, string> = { REST_PORT: port };
  await using cleanup = new AsyncDisposableStack();
  let running: ReturnType<typeof startPortico> | undefined;
  cleanup.defer(() => running?.[Symbol.asyncDispose]());
  let ran = 0;
  for (const { module, commands } of sections()) {
    const isExport = ({ command }: ShownCommand) => command.startsWith('export ');
    for (const { command, ...shown } of commands.filter(isExport)) {
      env = { ...env, ...settingsOf({ ...shown, command: `${command.replace('export ', '')} portico` }) };
      ran++;
    }
    if (module !== undefined) {
      if (running !== undefined) {
        running.child.kill('SIGINT');
        assert.equal(await running.exited(), 0);
      }
      const here = module
        .replace("'portico'", JSON.stringify(join(ROOT, 'src/index.ts')))
        .replace('127.0.0.1:8000', `127.0.0.1:${port}`);
      await writeFile(join(folder.path, 'portico.config.mts'), here);
      running = startPortico({ cwd: folder.path, env });
      await running.ready();
    }
    assert.ok(running !== undefined);
    const { urls } = running;
    const place = {
      cwd: folder.path,
      urls,
      env: {
        ...env,
        PORT: new URL(urls.webhook ?? '').port,
        MANAGEMENT_PORT: new URL(urls.management ?? '').port,
      },
    };
    for (const shown of commands.filter((each) => !isExport(each))) {
      const run = async () => alike((await runShown(shown, place)).stdout);
      const expected = alike(shown.output ?? '');
      // Handlers run after the 200: what shows their work is asked until it does.
      const isLater = /status/.test(shown.command) && !/-X PATCH|replay/.test(shown.command);
      if (isLater) await waitFor(shown.command, async () => (await run()) === expected);
      else assert.equal(await run(), expected, shown.command);
      ran++;
    }
  }
  assert.equal(ran, COMMANDS.length, 'each command was run once');
});
