import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Door } from '../../../src/config/options/options.ts';
import type { TestService } from '../../support/service.ts';
import { startTransportTwins } from '../../support/transport-twins.ts';
import type { FuzzedDoor } from './fuzz.ts';
import { watchPort } from './watch-port.ts';

/** What the doors of a service are asked for writes one of them. */
const WRITTEN = `
  SELECT 'user ' || name || ' ' || email AS text FROM users WHERE name LIKE ?1
  UNION ALL SELECT 'note ' || name FROM notes WHERE name LIKE ?1
  UNION ALL SELECT 'delivery ' || hex(body) FROM deliveries WHERE instr(body, ?2)`;

/** A door of two services with data in files, the second without the fast path. */
export interface ServiceTwins extends AsyncDisposable {
  /** How many users, rows and deliveries the first has stored. */
  readonly stored: number;
  /** The door of both; what has reached its endpoints is what is stored. */
  doors(door: Door): readonly [fast: FuzzedDoor, fastify: FuzzedDoor];
}

export async function startServiceTwins(): Promise<ServiceTwins> {
  await using cleanup = new AsyncDisposableStack();
  const env = { GRAPHQL_USERS: 'database', WEBHOOK_SECRET: 'sesame', WEBHOOK_MAX_BODY_BYTES: '300' };
  const module = `export default {
    relations: { notes: { key: ['name'], columns: { name: { type: 'text', max: 20 } } } },
  };`;
  const twins = cleanup.use(await startTransportTwins({ env, module, database: 'file' }));
  const open = (service: TestService) => {
    const database = new DatabaseSync(join(service.folder, 'portico.db'), { readOnly: true, timeout: 5_000 });
    cleanup.defer(() => database.close());
    return database.prepare(WRITTEN);
  };
  const written = { fast: open(twins.fast), fastify: open(twins.fastify) };
  const doorOf = (side: 'fast' | 'fastify', door: Door): FuzzedDoor => {
    const app = twins[side].current.doors[door];
    if (app === undefined) throw new Error(`no door ${door}`);
    return {
      ...watchPort(app.server),
      // Writes are committed by another thread.
      silence: 8,
      arrivals: (prefix) => written[side].all(`${prefix}%`, prefix).map(({ text }) => String(text)),
    };
  };
  const all = cleanup.move();
  return {
    get stored() {
      return written.fast.all('%', 'event').length;
    },
    doors: (door) => [doorOf('fast', door), doorOf('fastify', door)],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
