import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { guideBlock, type Instance, withInstances } from './guide.ts';

/** A proxy in front of instances. */
export interface Proxy extends AsyncDisposable {
  readonly url: string;
}

/** A program that is a proxy, configured as docs/PROXIES.md says. */
export interface ProxyProgram {
  readonly name: string;
  /** Why it cannot run here, or false. */
  readonly missing: string | false;
  /** Starts it; `change` is made to the guide's configuration. */
  start(instances: readonly Instance[], change?: (config: string) => string): Promise<Proxy>;
}

/** Debian puts both where the PATH of a user may not lead. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

function missing(command: string, word: string, name: string): string | false {
  try {
    execFileSync(command, [word], { stdio: 'ignore', env: { PATH } });
    return false;
  } catch {
    return `needs ${command} (Debian package ${name})`;
  }
}

/** Runs the program until it is disposed of; resolves once somebody listens at the port. */
async function run(
  command: string,
  args: readonly string[],
  port: number,
  cleanup: AsyncDisposableStack,
): Promise<Proxy> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH, HOME: tmpdir() } });
  const closed = once(child, 'close');
  cleanup.defer(async () => {
    child.kill('SIGTERM');
    await closed;
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-5_000);
  });
  await waitFor(`${command} to listen`, async () => {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${said}`);
    return listens(port);
  });
  const all = cleanup.move();
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy());
}

const same = (config: string) => config;

const haproxy: ProxyProgram = {
  name: 'HAProxy',
  missing: missing('haproxy', '-v', 'haproxy'),
  async start(instances, change = same) {
    await using cleanup = new AsyncDisposableStack();
    const folder = cleanup.use(await temporaryFolder()).path;
    const port = await freePort();
    const given = withInstances(change(guideBlock('haproxy')), instances);
    // Where nobody could take over, a busy machine is no reason to take the only instance out.
    const config = instances.length > 1 ? given : given.replace('fall 2', 'fall 60');
    const file = join(folder, 'haproxy.cfg');
    await writeFile(file, config.replace('bind :80', `bind 127.0.0.1:${port}`));
    return run('haproxy', ['-db', '-f', file], port, cleanup.move());
  },
};

const nginx: ProxyProgram = {
  name: 'nginx',
  missing: missing('nginx', '-v', 'nginx-light'),
  async start(instances, change = same) {
    await using cleanup = new AsyncDisposableStack();
    const folder = cleanup.use(await temporaryFolder()).path;
    const port = await freePort();
    const config = withInstances(change(guideBlock('nginx')), instances);
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    const file = join(folder, 'nginx.conf');
    await writeFile(
      file,
      `daemon off; master_process off; pid ${join(folder, 'pid')}; error_log stderr crit;
events { worker_connections 1024; }
http { access_log off; ${folders.join(' ')}
${config.replace('listen 80;', `listen 127.0.0.1:${port};`)}}`,
    );
    return run('nginx', ['-e', 'stderr', '-p', folder, '-c', file], port, cleanup.move());
  },
};

const caddy: ProxyProgram = {
  name: 'Caddy',
  missing: missing('caddy', 'version', 'caddy'),
  async start(instances, change = same) {
    await using cleanup = new AsyncDisposableStack();
    const folder = cleanup.use(await temporaryFolder()).path;
    const port = await freePort();
    const probed = new URL(instances[0]?.management ?? '').port;
    const site = withInstances(change(guideBlock('caddyfile')), instances)
      .replace('app.example.com {', `http://:${port} {\nbind 127.0.0.1`)
      .replace('health_port 8080', `health_port ${probed}`);
    const file = join(folder, 'Caddyfile');
    await writeFile(file, `{\n  admin off\n  storage file_system ${folder}\n}\n${site}`);
    return run('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port, cleanup.move());
  },
};

export const proxies: readonly ProxyProgram[] = [haproxy, nginx, caddy];
