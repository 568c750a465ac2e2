import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** One change to a source file: `from`, which stands in it once, becomes `to`. */
export interface SourceEdit {
  /** From the root of the repository. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A copy of the program that is wrong on purpose. */
export interface SourceCopy extends AsyncDisposable {
  /** The script that starts it. */
  readonly main: string;
}

/** Copies the sources and breaks the copy: a proof that passes on it as well proves nothing. */
export async function copySource(edits: readonly SourceEdit[]): Promise<SourceCopy> {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(await temporaryFolder());
  for (const folder of ['bin', 'src', 'packages']) {
    await cp(join(ROOT, folder), join(path, folder), {
      recursive: true,
      filter: (file) => !file.endsWith('.test.ts'),
    });
  }
  await cp(join(ROOT, 'package.json'), join(path, 'package.json'));
  await linkPackages(path);
  for (const { file, from, to } of edits) {
    const target = join(path, file);
    const parts = (await readFile(target, 'utf8')).split(from);
    assert.equal(parts.length, 2, `${file} holds ${JSON.stringify(from)} once`);
    await writeFile(target, parts.join(to));
  }
  const rest = cleanup.move();
  return { main: join(path, 'bin/portico.js'), [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** Gives a copy of the repository the packages that are installed here, and its own instead of those of the workspace. */
export async function linkPackages(copy: string): Promise<void> {
  const [from, to] = [join(ROOT, 'node_modules'), join(copy, 'node_modules')];
  await mkdir(join(to, '@portico'), { recursive: true });
  for (const name of await readdir(from)) {
    if (name !== '@portico') await symlink(join(from, name), join(to, name));
  }
  for (const name of await readdir(join(copy, 'packages'))) {
    await symlink(join('../../packages', name), join(to, '@portico', name));
  }
}
