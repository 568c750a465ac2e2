import { once } from 'node:events';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Workbench } from '../workbench.ts';
import { startPorticoUsers } from './rest.ts';
import type { Server } from './server.ts';

const ROOT = join(import.meta.dirname, '../..');
const GUIDE = join(ROOT, 'docs/OBSERVABILITY.md');

/** Receives an SDK's exports over OTLP, and discards them. */
async function startCollector(bench: Workbench): Promise<string> {
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
  });
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  bench.use({ [Symbol.dispose]: () => collector.close().closeAllConnections() });
  return `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
}

/** Writes the SDK's setup from docs/OBSERVABILITY.md to a file. */
function writeInstrumentation(folder: string): string {
  const [, code] = /`instrumentation\.ts`:\n\n```ts\n(.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  if (code === undefined) throw new Error(`${GUIDE} shows no instrumentation.ts`);
  const file = join(folder, 'instrumentation.ts');
  writeFileSync(file, code);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return file;
}

/**
 * Starts Portico's REST door with an OpenTelemetry SDK that exports to a collector, and with this number of
 * users.
 */
export async function startTracedUsers(
  bench: Workbench,
  users: number,
  env: Readonly<Record<string, string>>,
): Promise<Server> {
  const collector = await startCollector(bench);
  const file = writeInstrumentation(bench.folder());
  return startPorticoUsers(bench, users, {
    env: {
      NODE_OPTIONS: `--import ${pathToFileURL(file).href}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector,
      ...env,
    },
  });
}
