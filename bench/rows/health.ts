import assert from 'node:assert/strict';
import type { HttpRequest } from '../load/load.ts';
import { compare } from '../measure/compare.ts';
import { ask } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPeer } from '../servers/peer.ts';
import { startPortico } from '../servers/portico.ts';

const request: HttpRequest = { method: 'GET', path: '/actuator/health' };

export const health: Row = {
  name: 'health',
  title: 'Management: health',
  about:
    'GET `/actuator/health`, 64 connections. Portico has all four doors open and shows its checks of database, disk ' +
    'and event loop with details; express-actuator has none and says UP.',
  async run(bench) {
    const servers = {
      Portico: await startPortico(bench, 'management', {
        doors: ['graphql', 'rest', 'management', 'webhook'],
      }),
      'express-actuator': await startPeer(bench, 'express-actuator'),
    };
    for (const [label, server] of Object.entries(servers)) {
      const { status, text } = await ask(server, request);
      assert.deepEqual([status, JSON.parse(text).status], [200, 'UP'], label);
    }
    const contenders = Object.entries(servers).map(([label, server]) => ({
      label,
      server,
      requests: [request],
    }));
    const measured = await compare(bench, contenders, { connections: 64 });
    return summarise({ measured, targets: { 'express-actuator': 1.5 }, name: this.name, title: this.title });
  },
};
