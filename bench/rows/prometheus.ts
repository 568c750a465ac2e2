import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { HttpRequest } from '../load/load.ts';
import { openLoopDuring } from '../load/open-loop.ts';
import { compare, contendersOf } from '../measure/compare.ts';
import { ask } from '../measure/same-answers.ts';
import { median, spread } from '../measure/statistics.ts';
import { summarise } from '../measure/summary.ts';
import type { Finding, Row } from '../row.ts';
import { startPeer } from '../servers/peer.ts';
import { METERS, SERIES_OF_METER } from '../servers/series.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

const scrape: HttpRequest = { method: 'GET', path: '/actuator/prometheus' };
const SERIES = METERS * SERIES_OF_METER;

export const prometheus: Row = {
  name: 'prometheus',
  title: `Management: a scrape of ${SERIES.toLocaleString('en-US')} series`,
  about:
    `GET \`/actuator/prometheus\` with ${METERS} counters of ${SERIES_OF_METER} series each, which change meanwhile, one connection. ` +
    'The peer is a registry of `@prometheus-io/client` behind Express. Then the same again while another client sends ' +
    'a small request a hundred times a second: its longest latency is the stall.',
  async run(bench) {
    const script = join(import.meta.dirname, '../servers/portico-series.ts');
    const portico = await bench.start({
      command: [bench.node, script],
      env: (port) => ({ PORT: String(port) }),
    });
    const peer = await startPeer(bench, 'prometheus-client');
    const servers = { Portico: portico, '@prometheus-io/client': peer };
    for (const [label, server] of Object.entries(servers)) {
      const { text } = await ask(server, scrape);
      assert.equal(text.match(/^bench_\d+_total\{/gm)?.length, SERIES, label);
    }
    const contenders = contendersOf(servers, [scrape]);
    const measured = await compare(bench, contenders, { connections: 1 });
    const targets = { rate: { '@prometheus-io/client': 1.5 }, p99: 1 };
    const summary = summarise({ measured, targets, name: this.name, title: this.title });
    const stalls = [
      { ...(await stall(bench, 'Portico', portico, '/actuator/health')), target: { atMost: 50 } },
      await stall(bench, '@prometheus-io/client', peer, '/ping'),
    ];
    return { ...summary, findings: [...summary.findings, ...stalls] };
  },
};

/** The maximum latency of another request during consecutive scrapes. */
async function stall(bench: Workbench, label: string, { origin }: Server, path: string): Promise<Finding> {
  const longest: number[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    bench.say(`stalls, round ${round + 1} of ${bench.pace.rounds}: ${label}`);
    const { seconds } = bench.pace;
    const scrapes = bench.load({ origin, requests: [scrape], connections: 1, seconds });
    longest.push(Math.max(...(await openLoopDuring({ origin, request: { method: 'GET', path } }, scrapes))));
  }
  const what = `${label}: longest latency of a concurrent request`;
  return { what, value: median(longest), spread: spread(longest), unit: 'ms' };
}
