import { cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type PorticoProcess, startPortico } from './portico-process.ts';
import type { ShownCommand } from './shown-commands.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Starts the service on a copy of an example by the command of its README, `npm start -- --config <file>`. */
export async function startConfigExample(
  { command }: ShownCommand,
  env: Readonly<Record<string, string>> = {},
): Promise<PorticoProcess> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const [, args = ''] = command.split(' -- ');
  await cp(join(ROOT, 'examples'), join(folder, 'examples'), { recursive: true });
  // What `npm install` of the package would make.
  await mkdir(join(folder, 'node_modules'));
  await symlink(ROOT, join(folder, 'node_modules/portico'));
  const portico = cleanup.use(startPortico({ cwd: folder, args: ['serve', ...args.split(' ')], env }));
  await portico.ready();
  const rest = cleanup.move();
  return Object.create(portico, { [Symbol.asyncDispose]: { value: () => rest.disposeAsync() } });
}
