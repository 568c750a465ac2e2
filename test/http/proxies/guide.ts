import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Door } from '../../../src/config/options/options.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/PROXIES.md'), 'utf8');
/** The ports that the guide's configurations name. */
const PORTS: Readonly<Record<string, Door>> = {
  4000: 'graphql',
  8000: 'rest',
  8080: 'management',
  3000: 'webhook',
};

/** The base URLs of an instance's doors. */
export type Instance = Readonly<Record<string, string>>;

/** The configuration that docs/PROXIES.md shows, in a block of a language. */
export function guideBlock(language: 'nginx' | 'haproxy' | 'caddyfile' | 'yaml'): string {
  const [, block, more] = GUIDE.split(`\`\`\`${language}\n`);
  if (block === undefined || more !== undefined) throw new Error(`not one block of ${language}`);
  return block.slice(0, block.indexOf('```'));
}

/** Puts the addresses of instances in the place of those of the guide; of one instance for both. */
export function withInstances(config: string, instances: readonly Instance[]): string {
  return config.replace(/portico-([12]):(\d+)/g, (_, number: string, port: string) => {
    const instance = instances[Number(number) - 1] ?? instances[0];
    const url = instance?.[PORTS[port] ?? ''];
    if (url === undefined) throw new Error(`no door for port ${port}`);
    return new URL(url).host;
  });
}
