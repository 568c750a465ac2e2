import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { runShown } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ROOT } from './documents.ts';
import { shellCommands } from './shell.ts';

const PATH = 'docs/CONFIGURATION.md';
const GUIDE = readFileSync(join(ROOT, PATH), 'utf8');

/** What the guide has in backquotes behind a text. */
function behind(text: string): string {
  const [, found] = GUIDE.split(text)[1]?.match(/^`([^`]+)`/) ?? [];
  assert.ok(found !== undefined, text);
  return found;
}

test('each of the four places of the guide has its value, and the first one wins', async () => {
  await using folder = await temporaryFolder();
  const [flags] = shellCommands(behind('1. a flag: '));
  const [variables] = shellCommands(behind('2. the environment: '));
  const module = behind('3. the configuration module: ');
  const argv = flags?.words.slice(flags.words.indexOf('--') + 1) ?? [];
  const env = variables?.env ?? {};
  const portOf = async (given: { argv?: readonly string[]; env?: Readonly<Record<string, string>> }) => {
    const { settings } = await loadConfig({ argv: [], env: {}, cwd: folder.path, ...given });
    return settings['rest.port'];
  };
  assert.equal(await portOf({}), 8000);
  await writeFile(
    join(folder.path, 'portico.config.mts'),
    `export default { ${module.replace('9000', '9003')} };`,
  );
  assert.equal(await portOf({}), 9003);
  assert.equal(await portOf({ env }), 9000);
  assert.equal(await portOf({ env, argv: argv.map((word) => word.replace('9000', '9001')) }), 9001);
});

test('the help of the command has every option of the guide', async () => {
  const [, command = ''] = /`(npm run portico -- help serve)`/.exec(GUIDE) ?? [];
  const { stdout } = await runShown({ command, path: PATH, where: PATH }, { cwd: ROOT });
  const flags = [...GUIDE.matchAll(/^\| .*? \| `(--[\w-]+)` \|/gm)].map(([, flag = '']) => flag);
  assert.ok(flags.length > 80);
  for (const flag of flags) assert.ok(stdout.includes(flag), flag);
});
