import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { moduleFiles } from '../config/module/module-file.ts';
import { readArguments } from './argv/command-arguments.ts';
import { usages } from './help/usages.ts';
import { confirmed } from './terminal/confirm.ts';
import { note, print } from './terminal/output.ts';

/** Its import is a type, which is removed: so it runs where no package is installed, and whatever package.json says. */
const MODULE = `// Settings and code of this service; "portico help" lists all settings.
import type { PorticoConfig } from 'portico';

export default {
  management: {
    // GET /actuator/health. 0 is healthy; any other number shows as the code of what is wrong.
    healthChecks: { example: async () => 0 },
    // GET /actuator/motd
    endpoints: [{ id: 'motd', read: () => 'Be kind.' }],
  },
  webhook: {
    handlers: {
      // portico send --event new_commit --data '{"sha":"c0ffee"}'
      new_commit: async (delivery, { log }) => log.info({ data: delivery.data }, 'commit'),
    },
  },
} satisfies PorticoConfig;
`;

const PACKAGE = { private: true, type: 'module', scripts: { start: 'portico serve' } };

/**
 * `portico init`. Resolves to the exit code: 0, or 1 when the user said no. Overwrites nothing.
 * Rejects with UsageError where the folder has a configuration module.
 */
export async function initCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.init, argv);
  const folder = resolve(args.words[0] ?? '.');
  const [present] = moduleFiles(folder);
  if (present !== undefined) throw args.misuse(`${present} is already there; nothing was written`);
  const files = [
    { name: 'portico.config.mts', text: MODULE },
    ...(args.has('--package')
      ? [{ name: 'package.json', text: `${JSON.stringify(PACKAGE, null, 2)}\n` }]
      : []),
  ];
  const names = files.map(({ name }) => name).join(' and ');
  const never = new AbortController().signal;
  if (!args.has('--yes') && !(await confirmed(`Write ${names} into ${folder}?`, never))) return 1;
  mkdirSync(folder, { recursive: true });
  for (const { name, text } of files) await write(join(folder, name), text);
  note(
    'Start the service there with "portico", or "npx portico" where the package is installed in the folder.',
  );
  return 0;
}

async function write(path: string, text: string): Promise<void> {
  try {
    writeFileSync(path, text, { flag: 'wx' });
    await print(`${path} written.\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await print(`${path} is already there and stays as it is.\n`);
  }
}
