import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Delivery, PorticoConfig } from '../../../src/index.ts';

// The configuration module of two processes on one database, NAME being one of them.

/** Holds up the first process until the file `go` is there. */
async function attempt(delivery: Delivery): Promise<void> {
  const note = (mark: string) =>
    appendFileSync('effects.log', `${mark} ${delivery.event} ${delivery.attempt} ${process.env.NAME}\n`);
  note('begin');
  const isFirst = process.env.NAME === 'first';
  while (isFirst && !existsSync('go')) await delay(10);
  note('end');
  if (isFirst && delivery.event === 'failing') throw new Error('as planned');
}

const config: PorticoConfig = {
  limits: { webhook: { lease: 500, backoff: 0 } },
  webhook: { handlers: { failing: attempt, succeeding: attempt } },
};

// biome-ignore lint/style/noDefaultExport: a configuration module has one
export default config;
