import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** A registry on loopback that has the packages of this checkout and no others. */
export interface NpmRegistry extends AsyncDisposable {
  readonly url: string;
}

/** The folders of the installed packages, by name. */
function installed(): ReadonlyMap<string, readonly string[]> {
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  );
  const paths = Object.keys(lock.packages).filter((path) => path.startsWith('node_modules/'));
  return Map.groupBy(paths, (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
}

/** Answers npm with what package.json of each installed version says, and with its files. */
export async function npmRegistry(): Promise<NpmRegistry> {
  const packages = installed();
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    if (path.startsWith('tarball/')) {
      const folder = join(ROOT, path.slice('tarball/'.length));
      const words = [
        '-czf',
        '-',
        '--exclude=./node_modules',
        '--transform=s,^[.],package,',
        '-C',
        folder,
        '.',
      ];
      spawn('tar', words, { stdio: ['ignore', 'pipe', 'inherit'] }).stdout.pipe(response);
      return;
    }
    const folders = packages.get(path);
    if (folders === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    const versions = folders.flatMap((folder) => {
      const manifest = readManifest(folder);
      const dist = { tarball: `http://${request.headers.host}/tarball/${encodeURIComponent(folder)}` };
      return manifest === undefined ? [] : [[manifest.version, { ...manifest, dist }] as const];
    });
    const latest = versions.at(-1)?.[0];
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ name: path, 'dist-tags': { latest }, versions: Object.fromEntries(versions) }),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Undefined for a package of another platform, which is not installed. */
function readManifest(folder: string): { readonly version: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
}
