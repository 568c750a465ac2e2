import { existsSync, openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Delivery, PorticoConfig } from '../../../src/index.ts';

// The configuration module of two processes on one database, NAME being one of them.

const effects = openSync('effects.log', 'a');
const NAME = String(process.env.NAME);

function note(mark: 'begin' | 'end', { data, attempt }: Delivery): void {
  writeSync(effects, `${mark} ${(data as { readonly token: string }).token} ${attempt} ${NAME}\n`);
}

/** When the first process goes on, all that it has in hand fails: its outcome differs from that of the other one. */
async function slow(delivery: Delivery): Promise<void> {
  const wasStopped = NAME === 'first' && existsSync('go');
  note('begin', delivery);
  await delay((delivery.data as { readonly pause: number }).pause);
  note('end', delivery);
  if (NAME === 'first' && !wasStopped && existsSync('go')) throw new Error('as planned');
}

function quick(delivery: Delivery): void {
  note('begin', delivery);
  note('end', delivery);
}

const config: PorticoConfig = {
  limits: { webhook: { lease: 1_000, backoff: 0 } },
  webhook: { concurrency: 32, handlers: { slow, quick } },
};

// biome-ignore lint/style/noDefaultExport: a configuration module has one
export default config;
