import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { options } from '../../src/config/options/options.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { withoutPostgres } from '../support/databases.ts';
import { guideCommands } from '../support/guide-commands.ts';
import { MAIN, startPortico } from '../support/portico-process.ts';
import { prometheusMissing } from '../support/prometheus.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const FILE = join(ROOT, 'docs/OPERATIONS.md');
const GUIDE = readFileSync(FILE, 'utf8');
const run = promisify(execFile);

/** The lines of all shell blocks, without comments. */
const LINES = [...GUIDE.matchAll(/```sh\n(.*?)```/gs)]
  .flatMap(([, block = '']) => block.trimEnd().split('\n'))
  .map((line) => line.replace(/ *#.*$/, ''))
  .filter((line) => line !== '');

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
  const known = new Set<string>(Object.values(options).map(({ env }) => env));
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
  const [start = ''] = LINES.filter((line) => line.endsWith(' npm start'));
  const [, name = '', value = ''] = /^(\w+)=(\S+) /.exec(start) ?? [];
  await using service = startPortico({ cwd: folder.path, env: { [name]: value, CONFIG: config } });
  await service.ready();

  for (const { command, output } of guideCommands(GUIDE)) {
    if (command.startsWith('promtool') && prometheusMissing() !== false) continue;
    const here = command.replace('http://127.0.0.1:8080', service.urls.management ?? '');
    const { stdout } = await run('sh', ['-c', here], { cwd: ROOT });
    assert.equal(stdout.trimEnd(), output, command);
  }

  await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"bad"}' });
  const meter = `${service.urls.management}/actuator/prometheus?includedNames=webhook_dead`;
  await waitFor('a dead delivery', async () => /_dead 1$/m.test(await (await fetch(meter)).text()), 20_000);
  const commands = LINES.filter((line) => line.includes('portico '));
  assert.ok(commands.length >= 8);
  for (const command of commands) {
    const script = `portico() { '${process.execPath}' '${MAIN}' "$@"; }\n${command}`;
    const env = { ...CHILD_ENVIRONMENT, CONFIG: config };
    const { stdout } = await run('sh', ['-c', script], { cwd: folder.path, env });
    if (command.includes('--dead')) assert.match(stdout, /^1 deliver/m);
  }
  assert.ok(existsSync(join(folder.path, 'restored.db')));
});

test('the soak runs, and finds that nothing is lost', { timeout: 120_000 }, async () => {
  await using folder = await temporaryFolder();
  const soaks = LINES.filter((line) => line.startsWith('npm run soak -- '));
  assert.equal(soaks.length, 2);
  const reports = soaks.map(async (command) => {
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
