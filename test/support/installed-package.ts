import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildPackage } from './built-package.ts';
import { npmRegistry } from './npm-registry.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The package as npm packs it, and folders that it is installed in. */
export interface PackedPackage extends AsyncDisposable {
  /** A folder with what the package is packed from. */
  readonly built: string;
  readonly tarball: string;
  /** What has npm take packages from those of this checkout. */
  readonly env: NodeJS.ProcessEnv;
  /** Installs it into a new folder, after `prepare` has run there; with npm's own output when it fails. */
  install(name: string, prepare?: (folder: string) => Promise<void>): Promise<string>;
}

/** Builds and packs the package. It is installed with the packages of this checkout, without a network. */
export async function packPackage(): Promise<PackedPackage> {
  await using cleanup = new AsyncDisposableStack();
  const { built } = cleanup.use(await buildPackage({ types: true }));
  const { path } = cleanup.use(await temporaryFolder());
  const { url } = cleanup.use(await npmRegistry());
  const env = { npm_config_cache: join(path, 'cache'), npm_config_registry: url };
  const npm = (cwd: string, ...args: readonly string[]) =>
    promisify(execFile)('npm', args, { cwd, env: { ...process.env, ...env } });
  await npm(built, 'pack', '--silent', '--pack-destination', path);
  const tarball = join(path, (await readdir(path)).find((name) => name.endsWith('.tgz')) ?? 'no tarball');
  const rest = cleanup.move();
  return {
    built,
    tarball,
    env,
    async install(name, prepare) {
      const folder = join(path, name);
      await mkdir(folder);
      await prepare?.(folder);
      await npm(folder, 'install', '--no-audit', '--no-fund', '--silent', tarball);
      return folder;
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}
