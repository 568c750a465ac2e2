import { cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type PorticoProcess, startPortico } from './portico-process.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Starts the command in a copy of `examples/<name>`, whose configuration module it finds there. */
export async function startConfigExample(
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<PorticoProcess> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  await cp(join(ROOT, 'examples', name), folder, { recursive: true });
  // What `npm install` of the package would make.
  await mkdir(join(folder, 'node_modules'));
  await symlink(ROOT, join(folder, 'node_modules/portico'));
  const portico = cleanup.use(startPortico({ cwd: folder, env }));
  await portico.ready();
  const rest = cleanup.move();
  return Object.create(portico, { [Symbol.asyncDispose]: { value: () => rest.disposeAsync() } });
}
