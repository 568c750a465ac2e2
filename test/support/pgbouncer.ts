import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

/** Why there are no tests with PgBouncer; undefined when there are. */
export const withoutPgBouncer = isInstalled()
  ? undefined
  : 'PgBouncer is not installed: apt-get install pgbouncer';

/** The user that it runs as when the tests run as root, which PgBouncer refuses. */
const NOBODY = 65_534;

export interface PgBouncer extends AsyncDisposable {
  /** The URL of a database of the server, through the pooler. */
  url(database: string): string;
}

/** Starts a pooler in front of a server on this machine. */
export async function startPgBouncer(
  serverPort: number,
  mode: 'session' | 'transaction' | 'statement',
  settings: Readonly<Record<string, string | number>> = {},
): Promise<PgBouncer> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
  const port = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users.txt');
  const values = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: mode,
    ...settings,
  };
  const lines = Object.entries(values).map(([name, value]) => `${name} = ${value}`);
  await writeFile(users, '"portico" ""\n');
  await writeFile(
    config,
    `[databases]\n* = host=127.0.0.1 port=${serverPort}\n[pgbouncer]\n${lines.join('\n')}\n`,
  );
  for (const [path, rights] of [
    [folder, 0o755],
    [users, 0o644],
    [config, 0o644],
  ] as const) {
    await chmod(path, rights);
    if (asUser !== undefined) await chown(path, asUser.uid, asUser.gid);
  }
  let log = '';
  const child = spawn('pgbouncer', [config], { stdio: ['ignore', 'ignore', 'pipe'], ...asUser });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-4_000);
  });
  const exited = once(child, 'exit');
  cleanup.defer(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const url = (database: string) => {
    const through = new URL(database);
    through.port = String(port);
    return through.href;
  };
  await waitFor('PgBouncer to listen', async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start:\n${log}`);
    const client = new pg.Client({ connectionString: url('postgres://portico@127.0.0.1/postgres') });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  });
  const rest = cleanup.move();
  return { url, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

function isInstalled(): boolean {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
