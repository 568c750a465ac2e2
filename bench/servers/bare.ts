import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../measure/same-answers.ts';
import type { Workbench } from '../workbench.ts';
import { startPeer } from './peer.ts';
import type { Server } from './server.ts';

/** Its label in reports. It is no peer, but the upper bound of Node.js. */
export const BARE = 'bare node:http';

/** Starts a plain `node:http` server that answers every request with the same bytes. */
export function startBare(bench: Workbench, { type, text }: Answer): Promise<Server> {
  const folder = bench.folder();
  writeFileSync(join(folder, 'reply.json'), JSON.stringify({ type, body: text }));
  return startPeer(bench, 'bare', { folder });
}
