import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { optionKeys, optionOf } from '../../src/config/options/options.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { prometheusMissing } from '../support/prometheus.ts';
import { runShown, settingsOf, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const FILE = join(ROOT, 'docs/OPERATIONS.md');
const GUIDE = readFileSync(FILE, 'utf8');
const run = promisify(execFile);

const SERVE = shownCommand('docs/OPERATIONS.md', /^MANAGEMENT_INCLUDE=.* npm start$/);
const LOOKS = shownCommands('docs/OPERATIONS.md', /^(?:curl|promtool) /);
const COMMANDS = shownCommands('docs/OPERATIONS.md', /\bportico /);
const SOAKS = shownCommands('docs/OPERATIONS.md', /^npm run soak -- /);

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const titles = [...readFileSync(page, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('every link of the guide leads to a page, and to a section of it', () => {
  const links = [...GUIDE.matchAll(/\]\((?!http)([^)#]*)#?([^)]*)\)/g)];
  assert.ok(links.length > 25);
  for (const [link, path = '', anchor = ''] of links) {
    const page = path === '' ? FILE : join(dirname(FILE), path);
    assert.ok(existsSync(page), link);
    if (anchor !== '') assert.ok(anchorsOf(page).has(anchor), link);
  }
});

test('every setting that the guide names is one', () => {
  const known = new Set<string>(optionKeys.map((key) => optionOf(key).env));
  const named = new Set([...GUIDE.matchAll(/`([A-Z]+_[A-Z_]+)[`=]/g)].map(([, name = '']) => name));
  const others = ['NODE_OPTIONS', 'STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'];
  assert.ok(named.size > 10);
  assert.deepEqual(
    [...named].filter((name) => !known.has(name) && !others.includes(name)),
    [],
  );
});

test('every command of the guide does what it is shown for', async () => {
  await using folder = await temporaryFolder();
  const config = join(folder.path, 'portico.config.mjs');
  await writeFile(
    config,
    `export default { webhook: { handlers: { bad: { attempts: 1, handler: () => { throw new Error('x'); } } } } };`,
  );
  await using service = startPortico({ cwd: folder.path, env: { ...settingsOf(SERVE), CONFIG: config } });
  await service.ready();

  for (const look of LOOKS) {
    if (look.command.startsWith('promtool') && prometheusMissing() !== false) continue;
    const { stdout } = await runShown(look, { cwd: ROOT, urls: service.urls });
    assert.equal(stdout.trimEnd(), look.output, look.command);
  }

  await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"bad"}' });
  const meter = `${service.urls.management}/actuator/prometheus?includedNames=webhook_dead`;
  await waitFor('a dead delivery', async () => /_dead 1$/m.test(await (await fetch(meter)).text()));
  assert.ok(COMMANDS.length >= 5);
  for (const each of COMMANDS) {
    const { code, stdout, stderr } = await runShown(each, { cwd: folder.path, env: { CONFIG: config } });
    assert.equal(code, 0, `${each.command}\n${stderr}`);
    if (each.command.includes('--dead')) assert.match(stdout, /^1 deliver/m);
  }
});

test('the soak runs, and finds that nothing is lost', { timeout: 600_000 }, async () => {
  await using folder = await temporaryFolder();
  assert.equal(SOAKS.length, 2);
  const reports = SOAKS.map(async ({ command }) => {
    if (command.includes('--postgres') && withoutPostgres !== undefined) return;
    const words = command
      .slice('npm run soak -- '.length)
      .replace('--minutes 5', '--minutes 0.05')
      .split(' ');
    const main = join(ROOT, 'bench/soak/main.ts');
    const { stdout } = await run(process.execPath, [main, ...words, '--out', folder.path]);
    const report = readFileSync(stdout.trim(), 'utf8');
    assert.match(report, /Acknowledged and lost, or not handled: none/);
    assert.match(report, /\| deliver +\| +[1-9]/);
  });
  await Promise.all(reports);
});
