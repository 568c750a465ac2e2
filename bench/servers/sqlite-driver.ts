import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export interface SqliteDriver {
  readonly name: 'better-sqlite3' | 'node:sqlite';
  /** Why better-sqlite3 does not load. */
  readonly reason?: string;
}

/** The driver that the peers use on this Node: better-sqlite3 where it loads. */
export function sqliteDriver(node: string): SqliteDriver {
  const script = `new (require('better-sqlite3'))(':memory:').prepare('SELECT 1').get()`;
  try {
    execFileSync(node, ['-e', script], {
      cwd: join(import.meta.dirname, '..'),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return { name: 'better-sqlite3' };
  } catch (error) {
    const [reason = 'it does not load'] =
      String((error as { readonly stderr?: unknown }).stderr).match(/^\w*Error.*$/m) ?? [];
    return { name: 'node:sqlite', reason };
  }
}
