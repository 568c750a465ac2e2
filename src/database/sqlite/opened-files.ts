import { statSync } from 'node:fs';

/** A file by what it is, whatever its name. */
interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/** How the files are. */
export interface Look {
  /** What is wrong and what to do once one of them is no longer at its path; undefined while both are. */
  readonly lost: string | undefined;
  /** Size of the WAL. */
  readonly walBytes: number;
}

/**
 * The file of an open database and its WAL, as they were found after the opening. SQLite goes on in files that were
 * deleted or replaced, and what it writes there is lost with the process.
 */
export class OpenedFiles {
  readonly #files: readonly (readonly [path: string, opened: Identity])[];

  /** `path` is that of the database, which is open and was read from, so that there is a WAL. */
  constructor(path: string) {
    this.#files = [path, `${path}-wal`].flatMap((each) => {
      const opened = statSync(each, { throwIfNoEntry: false });
      return opened === undefined ? [] : [[each, opened] as const];
    });
  }

  look(): Look {
    let walBytes = 0;
    for (const [path, opened] of this.#files) {
      const found = statSync(path, { throwIfNoEntry: false });
      // The WAL is the last one.
      walBytes = found?.size ?? 0;
      if (found !== undefined && found.ino === opened.ino && found.dev === opened.dev) continue;
      const what = found === undefined ? 'was deleted or moved' : 'was replaced by another file';
      const lost = `${path} ${what} while the database is open, so nothing more is stored. Put the same file back, or stop the service and start it on the file that is there; docs/SCALING.md says how to save a deleted one.`;
      return { lost, walBytes: 0 };
    }
    return { lost: undefined, walBytes };
  }
}
