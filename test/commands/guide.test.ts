import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { loadConfig } from '../../src/app/load-config.ts';
import { readWebhookSettings } from '../../src/webhook/webhook.ts';
import { startPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import {
  runShown,
  runShownUntil,
  settingsOf,
  shownCommand,
  shownCommands,
} from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const GUIDE = ['WEBHOOKS', 'HANDLERS', 'DELIVERIES']
  .map((name) => readFileSync(join(import.meta.dirname, `../../docs/${name}.md`), 'utf8'))
  .join('\n');
const SHOWN = [...shownCommands('docs/WEBHOOKS.md'), ...shownCommands('docs/DELIVERIES.md')];
const SHOW = shownCommand('docs/DELIVERIES.md', /^portico deliveries show <id>$/);
const SERVE = shownCommand('docs/DELIVERIES.md', /npm start$/);
const DEAD = `SELECT 1 FROM jobs JOIN deliveries ON deliveries.seq = jobs.delivery
  WHERE deliveries.id = ? AND jobs.status = 'dead'`;
const SECRETS = {
  GITHUB_WEBHOOK_SECRET: 'github-secret',
  STRIPE_WEBHOOK_SECRET: 'stripe-secret',
  BILLING_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  ALERTS_SECRET: `whsec_${Buffer.alloc(32, 2).toString('base64')}`,
};

function blocks(language: string): readonly string[] {
  return [...GUIDE.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(
    ([, block = '']) => block,
  );
}

test('every configuration of the guide can be used', async () => {
  const modules = blocks('ts');
  assert.ok(modules.length >= 3);
  for (const module of modules) {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'slack-secret.txt'), 'slack-secret\n');
    await writeFile(join(folder.path, 'portico.config.ts'), module);
    await loadConfig({ argv: [], env: SECRETS, cwd: folder.path, check: readWebhookSettings });
  }
});

/** Without what differs from run to run: times, durations and processes. */
const steady = (text: string) =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/[\d,]+ ms\b(?= )/g, 'DURATION')
    .replaceAll(/ \S+:\d+:[\da-f]{12}$/gm, ' PROCESS')
    .replaceAll(/ +/g, ' ');

test('isolated handlers that end or never do so are shown as in the guide', async () => {
  const [, module = '', , shown = ''] =
    /\n## Isolated handlers\n.*?```ts\n(.*?)```(.*?)```\n(.*?)```/s.exec(GUIDE) ?? [];
  await using service = await startTestService({ module, database: 'file' });
  await service.listen();
  const env = { DATABASE_URL: service.databaseUrl, PORT: new URL(service.urls.webhook ?? '').port };
  const said = [];
  for (const event of ['crash', 'loop']) {
    const command = `portico send --event ${event}`;
    assert.ok(GUIDE.includes(`\`${command}\``));
    const sent = await runShown({ ...SHOW, command }, { cwd: service.folder, env });
    const [, id = ''] = /portico deliveries show (\S+)/.exec(sent.stderr) ?? [];
    const place = { cwd: service.folder, env, names: { '<id>': id } };
    await waitFor(`${event} to be dead`, () => {
      using db = new DatabaseSync(join(service.folder, 'portico.db'), { readOnly: true, timeout: 5_000 });
      return db.prepare(DEAD).get(id) !== undefined;
    });
    const { stdout } = await runShown(SHOW, place);
    assert.match(stdout, /Status +dead/);
    said.push(/\nJobs\n(.*?)\n\n/s.exec(stdout)?.[1]);
  }
  assert.equal(steady(said.join('\n')), steady(shown.trimEnd()));
});

/** The configurations of the guide as one, but for the addresses, with handlers that end at once. */
function together(handlers: string): string {
  const parts = blocks('ts').map((_, i) => `part${i}`);
  return `
${parts.map((part) => `import ${part} from './${part}.ts';`).join('\n')}
const all = (key) => Object.assign({}, ...[${parts}].map(({ webhook }) => webhook[key] ?? {}));
const fail = () => { throw new Error('broken'); };
export default {
  webhook: { sources: all('sources'), handlers: { ...all('handlers'), ${handlers} } },
};
`;
}

const BROKEN = 'broken: { handler: fail, attempts: 1 }';

test('every command of the guide does what it is shown for', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'slack-secret.txt'), 'slack-secret\n');
  for (const [i, module] of blocks('ts').entries()) await writeFile(join(folder.path, `part${i}.ts`), module);
  const config = join(folder.path, 'portico.config.ts');
  await writeFile(config, together(BROKEN));
  await using service = startPortico({
    cwd: folder.path,
    env: { ...SECRETS, ...settingsOf(SERVE) },
  });
  await service.ready();
  const portOf = (door: string) => new URL(service.urls[door] ?? '').port;
  const env = { ...SECRETS, PORT: portOf('webhook'), MANAGEMENT_PORT: portOf('management') };

  async function find(query: string): Promise<readonly { readonly id: string }[]> {
    const url = `${service.urls.management}/actuator/deliveries?limit=1&${query}`;
    const { items } = (await (await fetch(url)).json()) as {
      readonly items: readonly { readonly id: string }[];
    };
    return items;
  }
  /** The newest delivery of a status; the guide's commands find one of each. */
  const newest = async (status: string) => (await find(`status=${status}`))[0]?.id;
  async function send(event: string): Promise<void> {
    const body = JSON.stringify({ event });
    const { status } = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
    assert.equal(status, 200);
  }
  async function deadOne(): Promise<string> {
    await send('broken');
    return waitFor('a dead delivery', () => newest('dead'));
  }
  await send('invoice');

  const commands = SHOWN.filter(({ command }) => !command.endsWith('npm start'));
  assert.ok(commands.length > 20);
  for (const shown of commands) {
    const { command } = shown;
    const id = /<id>|dead/.test(command) ? await deadOne() : '';
    if (command.includes('--event invoice')) await waitFor('it to be done', () => newest('done'));
    // What nothing handled when it came has a handler by then.
    if (command.includes('unhandled')) await writeFile(config, together(`${BROKEN}, order: () => {}`));
    const place = { cwd: folder.path, env, urls: service.urls, names: { '<id>': id } };
    if (/ tail| listen/.test(command)) {
      await runShownUntil(shown, place, (said) => said.includes('Waiting for deliveries'));
    } else {
      const { code, stdout, stderr } = await runShown(shown, place);
      assert.equal(code, 0, `${command}\n${stdout}${stderr}`);
    }
  }

  const [pushed] = await find('source=github');
  const place = { cwd: folder.path, env, names: { '<id>': pushed?.id ?? '' } };
  const labelsOf = (text: string) => text.match(/^[A-Z][a-z]+(?: at)?(?= {2}|$)/gm);
  const [, sample = ''] = /\n```\n(Delivery {2}.*?)```/s.exec(GUIDE) ?? [];
  assert.deepEqual(labelsOf((await runShown(SHOW, place)).stdout), labelsOf(sample));
});
