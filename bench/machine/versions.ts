import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolVersion } from './tools.ts';

const PEERS = [
  '@apollo/server',
  '@as-integrations/fastify',
  '@envelop/graphql-jit',
  '@prometheus-io/client',
  'better-sqlite3',
  'express',
  'express-actuator',
  'fastify',
  'graphile-worker',
  'graphql',
  'graphql-yoga',
  'mercurius',
  'pg',
  'pg-boss',
  'postgres',
  'undici',
] as const;

/** Names and versions of all measured programs and tools; `node` is the version that runs the servers. */
export function describeVersions(node: string): readonly string[] {
  const peers = PEERS.map((name) => `${name} ${packageVersion(join('node_modules', name))}`);
  const tools = [
    toolVersion('wrk', '-v')?.replace(/ Copyright.*/, ''),
    toolVersion('strace', '-V')?.replace(' -- version', ''),
    toolVersion('pgbench', '--version'),
    toolVersion('webhook', '-version'),
  ];
  return [
    `Node.js ${node}`,
    `Portico ${packageVersion('..')}`,
    ...peers,
    ...tools.filter((version) => version !== undefined),
  ];
}

function packageVersion(folder: string): string {
  const text = readFileSync(join(import.meta.dirname, '..', folder, 'package.json'), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
