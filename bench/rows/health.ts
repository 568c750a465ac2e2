import assert from 'node:assert/strict';
import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf } from '../measure/compare.ts';
import { ask } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPeer } from '../servers/peer.ts';
import { ALL_DOORS, startPortico } from '../servers/portico.ts';
import { sqliteDriver } from '../servers/sqlite-driver.ts';

const request: HttpRequest = { method: 'GET', path: '/actuator/health' };
const CHECKED = 'express-actuator, with checks';
/** It answers UP without any check, so it is shown for information only. */
const CONSTANT = 'express-actuator, constant';

export const health: Row = {
  name: 'health',
  title: 'Management: health',
  about:
    'GET `/actuator/health`, 64 connections. Portico has all four doors open and answers with details from its five ' +
    'checks: database, writer thread, disk space, event loop and webhook backlog (this one at most every 5 s). ' +
    'express-actuator with checks does the first of these that a service without a writer thread and an inbox has: a ' +
    'query on SQLite, the disk space and the p99 of the event loop delay, for each request. Its built-in endpoint ' +
    'checks nothing and sends a constant; it is shown for information.',
  async run(bench) {
    const SQLITE = sqliteDriver(bench.node).name;
    const servers = {
      Portico: await startPortico(bench, 'management', { doors: ALL_DOORS }),
      [CHECKED]: await startPeer(bench, 'express-actuator', { env: { CHECKS: 'yes', SQLITE } }),
      [CONSTANT]: await startPeer(bench, 'express-actuator'),
    };
    const checks = { Portico: ['db', 'writer', 'diskSpace'], [CHECKED]: ['db', 'diskSpace'], [CONSTANT]: [] };
    for (const [label, server] of Object.entries(servers)) {
      const { status, text } = await ask(server, request);
      const { status: health, components = {} } = JSON.parse(text) as Health;
      assert.deepEqual([status, health], [200, 'UP'], label);
      for (const check of checks[label as keyof typeof checks]) {
        assert.equal(components[check]?.status, 'UP', `${label}: ${check}`);
      }
    }
    const contenders = contendersOf(servers, [request]);
    const measured = await compare(bench, contenders, { connections: 64 });
    const targets = { rate: { [CHECKED]: 1.3 }, p99: 1 };
    return summarise({ measured, targets, ceilings: [CONSTANT], name: this.name, title: this.title });
  },
};

interface Health {
  readonly status: string;
  readonly components?: Readonly<Record<string, { readonly status: string }>>;
}
