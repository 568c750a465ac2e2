import assert from 'node:assert/strict';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

/** One change to a source file: `from`, which stands in it once, becomes `to`. */
export interface SourceEdit {
  /** Below `src/`. */
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
  for (const folder of ['bin', 'src']) await cp(join(ROOT, folder), join(path, folder), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(path, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  for (const { file, from, to } of edits) {
    const target = join(path, 'src', file);
    const parts = (await readFile(target, 'utf8')).split(from);
    assert.equal(parts.length, 2, `src/${file} holds ${JSON.stringify(from)} once`);
    await writeFile(target, parts.join(to));
  }
  const rest = cleanup.move();
  return { main: join(path, 'bin/portico.js'), [Symbol.asyncDispose]: () => rest.disposeAsync() };
}
