import { join } from 'node:path';
import type { Workbench } from '../workbench.ts';
import type { Server } from './server.ts';

interface PeerOptions {
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly onAllCores?: boolean;
}

/** Starts the peer `bench/peers/<name>.ts`. */
export function startPeer(
  bench: Workbench,
  name: string,
  { env = {}, ...options }: PeerOptions = {},
): Promise<Server> {
  return bench.start({
    command: [bench.node, join(import.meta.dirname, '../peers', `${name}.ts`)],
    env: (port) => ({ PORT: String(port), ...env }),
    ...options,
  });
}
