import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { withoutControls } from './proof-settings.ts';
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
  for (const [file, text] of await edited(edits)) await writeFile(join(path, file), text);
  const rest = cleanup.move();
  return { main: join(path, 'bin/portico.js'), [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** The texts of the edited files. Fails if an edit no longer fits. */
async function edited(edits: readonly SourceEdit[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of edits) {
    const parts = (texts.get(file) ?? (await readFile(join(ROOT, file), 'utf8'))).split(from);
    assert.equal(parts.length, 2, `${file} holds ${JSON.stringify(from)} once`);
    texts.set(file, parts.join(to));
  }
  return texts;
}

interface Control {
  readonly edits: readonly SourceEdit[];
  readonly skip?: string | boolean;
  readonly timeout?: number;
  /** Checks that the proof fails on the broken program, which `main` starts. */
  find(main: string, t: TestContext): Promise<void>;
}

/**
 * A test of a proof: it must find a program that is broken on purpose. `npm test` only checks that the edits still
 * fit the sources.
 */
export function control(what: string, { edits, find, ...options }: Control): void {
  test(`control: ${what}`, options, async (t) => {
    await edited(edits);
    if (withoutControls) return t.skip(withoutControls);
    await using copy = await copySource(edits);
    await find(copy.main, t);
  });
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

/** Acknowledges deliveries before they are committed. */
export const earlyAcknowledgement: SourceEdit = {
  file: 'src/sql/sqlite/open.ts',
  from: 'const inbox = sqliteInbox(reads, writer, observer);',
  to: `const inbox = ((inbox) => {
      const append = inbox.append.bind(inbox);
      inbox.append = async (delivery) => {
        append(delivery).catch(() => {});
        return 'stored';
      };
      inbox.appendAll = async (deliveries) =>
        deliveries.map((delivery) => {
          append(delivery).catch(() => {});
          return { appended: 'stored', jobs: [] };
        });
      return inbox;
    })(sqliteInbox(reads, writer, observer));`,
};
