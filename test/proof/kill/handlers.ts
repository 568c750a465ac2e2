import { openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Delivery, PorticoConfig } from '../../../src/index.ts';
import { relations } from '../rows/declaration.ts';

// The configuration module of the killed processes. What a handler did stands in effects.log: a write that returned
// outlives its process.
const effects = openSync('effects.log', 'a');

function note(mark: 'begin' | 'end', { data, attempt }: Delivery): void {
  const { token } = data as { readonly token: string };
  writeSync(effects, `${mark} ${token} ${attempt} ${process.env.RUN}\n`);
}

async function steady(delivery: Delivery): Promise<void> {
  note('begin', delivery);
  const { pause } = delivery.data as { readonly pause: number };
  if (pause > 0) await delay(pause);
  note('end', delivery);
}

async function failing(delivery: Delivery): Promise<void> {
  if (delivery.attempt === 1) throw new Error('as planned');
  await steady(delivery);
}

const config: PorticoConfig = {
  relations,
  limits: { webhook: { lease: 500, backoff: 20 } },
  webhook: {
    // A delivery whose process is killed again and again must not die of it here.
    attempts: 1_000_000,
    handlers: { steady, failing, ordered: { handler: steady, order: '/data/key' } },
  },
};

// biome-ignore lint/style/noDefaultExport: a configuration module has one
export default config;
