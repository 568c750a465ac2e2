import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasTool } from '../machine/tools.ts';
import type { Workbench } from '../workbench.ts';
import type { Server } from './server.ts';

/**
 * Starts Debian's `webhook`, a receiver in Go that runs a command for each delivery; undefined if it is not
 * installed.
 */
export async function startGoWebhook(bench: Workbench): Promise<Server | undefined> {
  if (!hasTool('webhook', '-version')) return undefined;
  const folder = bench.folder();
  const hook = {
    id: 'webhook',
    'execute-command': '/bin/true',
    'response-message': 'Webhook received',
    'http-methods': ['POST'],
  };
  writeFileSync(join(folder, 'hooks.json'), JSON.stringify([hook]));
  return bench.start({
    command: ['sh', '-c', 'exec webhook -hooks hooks.json -ip 127.0.0.1 -urlprefix "" -port "$PORT"'],
    env: (port) => ({ PORT: String(port) }),
    folder,
  });
}
