import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { readWebhookSettings } from '../../src/webhook/settings.ts';
import { startPortico } from '../support/portico-process.ts';
import { runShown, runShownUntil } from '../support/run-shown.ts';
import { settingsOf, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const GUIDE = ['WEBHOOKS', 'HANDLERS', 'DELIVERIES']
  .map((name) => readFileSync(join(import.meta.dirname, `../../docs/${name}.md`), 'utf8'))
  .join('\n');
const SHOWN = [...shownCommands('docs/WEBHOOKS.md'), ...shownCommands('docs/DELIVERIES.md')];
const SERVE = shownCommand('docs/DELIVERIES.md', /npm start$/);
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
  const env = { ...SECRETS, PORT: new URL(service.urls.webhook ?? '').port };

  /** The newest delivery of a status; the guide's commands find one of each. */
  async function newest(status: string): Promise<string | undefined> {
    const url = `${service.urls.management}/actuator/deliveries?limit=1&status=${status}`;
    const { items } = (await (await fetch(url)).json()) as {
      readonly items: readonly { readonly id: string }[];
    };
    return items[0]?.id;
  }
  async function send(event: string): Promise<void> {
    const body = JSON.stringify({ event });
    const { status } = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
    assert.equal(status, 200);
  }
  async function deadOne(): Promise<string> {
    await send('broken');
    return waitFor('a dead delivery', () => newest('dead'), 20_000);
  }
  await send('invoice');

  const commands = SHOWN.filter(({ command }) => !command.endsWith('npm start'));
  assert.ok(commands.length > 20);
  for (const shown of commands) {
    const { command } = shown;
    const id = await deadOne();
    if (command.includes('--event invoice')) await waitFor('it to be done', () => newest('done'), 20_000);
    // What nothing handled when it came has a handler by then.
    if (command.includes('unhandled')) await writeFile(config, together(`${BROKEN}, order: () => {}`));
    const place = { cwd: folder.path, env, urls: service.urls, names: { '<id>': id } };
    if (command.includes(' tail')) {
      await runShownUntil(shown, place, (said) => said.includes('Waiting for deliveries'));
    } else {
      const { code, stdout, stderr } = await runShown(shown, place);
      assert.equal(code, 0, `${command}\n${stdout}${stderr}`);
    }
  }
});
