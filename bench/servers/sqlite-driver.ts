import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export interface SqliteDriver {
  readonly name: 'better-sqlite3' | 'node:sqlite';
  /** The reason why better-sqlite3 cannot be loaded. */
  readonly reason?: string;
}

/** The peers' driver on this Node: better-sqlite3 if it can be loaded. */
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
