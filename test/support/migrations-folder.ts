import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

/** A folder of made-up migrations for a runner. */
export interface MigrationsFolder extends AsyncDisposable {
  readonly url: URL;
  write(name: string, sql: string): void;
  remove(name: string): void;
  /** Makes a migration whose SQL the runner waits for once it gets there: inside its transaction, behind those before. */
  writePipe(name: string): Pipe;
}

/** The SQL of a migration that a test gives when it likes. */
export interface Pipe {
  /** Resolves once a runner reads it, to what gives the runner the SQL. */
  reached(): Promise<(sql: string) => void>;
}

export async function migrationsFolder(files: Readonly<Record<string, string>>): Promise<MigrationsFolder> {
  const folder = await temporaryFolder();
  const path = (name: string) => join(folder.path, name);
  const write = (name: string, sql: string) => writeFileSync(path(name), sql);
  for (const [name, sql] of Object.entries(files)) write(name, sql);
  return {
    url: pathToFileURL(`${folder.path}/`),
    write,
    remove: (name) => rmSync(path(name), { force: true }),
    writePipe(name) {
      execFileSync('mkfifo', [path(name)]);
      return {
        async reached() {
          const end = await waitFor(`a runner to read ${name}`, () => openReadPipe(path(name)));
          return (sql) => {
            writeFileSync(end, sql);
            closeSync(end);
          };
        },
      };
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** Opens the end of a pipe that is written; undefined while nobody reads it. */
function openReadPipe(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined;
    throw error;
  }
}
