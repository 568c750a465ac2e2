import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { readWebhookSettings } from '../../src/webhook/settings.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { runPortico } from '../support/portico-command.ts';
import { MAIN, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const GUIDE = ['WEBHOOKS', 'HANDLERS', 'DELIVERIES']
  .map((name) => readFileSync(join(import.meta.dirname, `../../docs/${name}.md`), 'utf8'))
  .join('\n');
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
    env: {
      ...SECRETS,
      MANAGEMENT_INCLUDE: 'health,deliveries',
      MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
    },
  });
  await service.ready();
  const env = { ...SECRETS, PORT: new URL(service.urls.webhook ?? '').port };
  const portico = (...args: readonly string[]) => runPortico(args, { cwd: folder.path, env });

  /** The newest delivery of a status; the guide's commands find one of each. */
  async function newest(status: string): Promise<string | undefined> {
    const { stdout } = await portico('deliveries', 'list', '--json', '--limit', '1', '--status', status);
    return JSON.parse(stdout).items[0]?.id;
  }
  async function deadOne(): Promise<string> {
    await portico('send', '--event', 'broken');
    return waitFor('a dead delivery', () => newest('dead'), 20_000);
  }
  await portico('send', '--event', 'invoice');

  const lines = blocks('sh').flatMap((block) => block.trimEnd().split('\n'));
  const commands = lines.filter((line) => !line.endsWith('npm start'));
  assert.ok(commands.length > 20);
  for (const command of commands) {
    const id = await deadOne();
    if (command.includes('--event invoice')) await waitFor('it to be done', () => newest('done'), 20_000);
    // What nothing handled when it came has a handler by then.
    if (command.includes('unhandled')) await writeFile(config, together(`${BROKEN}, order: () => {}`));
    const here = command
      .replaceAll('<id>', id)
      .replace('http://127.0.0.1:3000', service.urls.webhook ?? '')
      .replace('http://127.0.0.1:8080', service.urls.management ?? '');
    const program = `'${process.execPath}' '${MAIN}'`;
    const isTail = command.includes(' tail');
    const script = isTail
      ? here.replace('portico', `exec ${program}`)
      : `portico() { ${program} "$@"; }\n${here}`;
    const child = spawn('sh', ['-c', script], {
      cwd: folder.path,
      env: { ...CHILD_ENVIRONMENT, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    const closed = once(child, 'close');
    if (isTail) {
      await waitFor('tail to begin', () => said.includes('Waiting for deliveries'), 20_000);
      child.kill('SIGINT');
    }
    const [code] = await closed;
    assert.equal(code, 0, `${here}\n${said}`);
  }
});
