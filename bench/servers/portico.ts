import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Workbench } from '../workbench.ts';
import type { Server } from './server.ts';

export const MAIN = join(import.meta.dirname, '../../bin/portico.js');

export type Door = 'graphql' | 'rest' | 'management' | 'webhook';

export const ALL_DOORS: readonly Door[] = ['graphql', 'rest', 'management', 'webhook'];

const PORT_VARIABLE: Readonly<Record<Door, string>> = {
  graphql: 'GRAPHQL_PORT',
  rest: 'REST_PORT',
  management: 'MANAGEMENT_PORT',
  webhook: 'PORT',
};

export interface PorticoOptions {
  /** A folder with an existing database. Default: an empty folder. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly onAllCores?: boolean;
  /** The file of the command. Default: that of the sources. */
  readonly main?: string;
  /** The doors to open. Default: only `door`. */
  readonly doors?: readonly Door[];
}

/** Starts Portico with its defaults; the origin is that of `door`. */
export function startPortico(
  bench: Workbench,
  door: Door,
  { env = {}, doors = [door], main = MAIN, ...options }: PorticoOptions = {},
): Promise<Server> {
  return bench.start({
    command: [bench.node, main, 'serve'],
    env: (port) => ({
      INTERFACES: doors.join(','),
      GRAPHQL_PORT: '0',
      REST_PORT: '0',
      MANAGEMENT_PORT: '0',
      PORT: '0',
      SHUTDOWN_PRE_STOP_DELAY: '0',
      [PORT_VARIABLE[door]]: String(port),
      ...env,
    }),
    ...options,
  });
}

/** Builds the package as published; returns its folder. */
export function buildPackage(bench: Workbench): string {
  const folder = join(bench.folder(), 'portico');
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/build.ts'), folder], {
    stdio: 'ignore',
  });
  return folder;
}
