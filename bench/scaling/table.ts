import type { LoadResult } from '../load/load.ts';
import { grouped } from '../measure/figures.ts';
import { median } from '../measure/statistics.ts';
import type { Table } from '../row.ts';
import type { Cost } from './installation.ts';

/** One measurement: what was done, by how many processes, and what it cost. */
export interface Figures {
  readonly what: string;
  readonly processes: number;
  readonly load: LoadResult;
  readonly cost: Cost;
  readonly footprint?: undefined | { readonly connections: number; readonly memory: number };
  readonly sizes?:
    | undefined
    | readonly { readonly table: string; readonly rows: number; readonly bytes: number }[];
}

/** Share of a core that other programs may use in a round that counts. */
const CALM = 0.1;

/**
 * A line for each kind and number of processes, with the medians of the rounds that other programs hardly disturbed, or of
 * all without such a round. CPU times are microseconds per request.
 */
export function scalingTable(found: readonly Figures[]): Table {
  const groups = Map.groupBy(found, ({ what, processes }) => `${what}\n${processes}`);
  const lines = [...groups.values()].map((all) => {
    const calm = all.filter(({ cost }) => Math.max(...cost.others) < CALM);
    const group = calm.length > 0 ? calm : all;
    const middle = (of: (one: Figures) => number) => median(group.map(of));
    const [{ what, processes } = { what: '', processes: 0 }] = group;
    // Of idle processes, it is the cost of a second.
    const per = ({ load, cost }: Figures) => (load.requests === 0 ? cost.seconds : load.requests);
    const percent = (of: (cost: Cost) => number) => `${Math.round(100 * middle(({ cost }) => of(cost)))} %`;
    const idle = group.every(({ load }) => load.requests === 0);
    const shown = (value: number, isMissing = idle) => (isMissing ? '-' : grouped(value));
    // A vacuum writes a few transactions, also while users only read.
    const writes = middle(({ cost }) => cost.writes);
    const each = middle(per) / writes;
    return [
      what,
      String(processes),
      String(group.length),
      shown(middle(({ load }) => load.perSecond)),
      // A backlog has no latency.
      ...[middle(({ load }) => load.p50), middle(({ load }) => load.p99)].map((ms) => shown(ms, ms === 0)),
      grouped(middle((one) => (1e6 * one.cost.serverCpu) / per(one))),
      grouped(middle((one) => (1e6 * one.cost.processCpu) / per(one))),
      percent(({ serverCpu, seconds }) => serverCpu / seconds),
      percent(({ processCpu, loadCpu, seconds }) => (processCpu + loadCpu) / seconds),
      percent(({ others }) => Math.max(...others)),
      grouped(middle((one) => one.cost.walBytes / per(one))),
      shown(each, idle || writes < 10),
    ];
  });
  return {
    head: [
      ...['', 'processes', 'rounds', 'per second', 'p50 ms', 'p99 ms', 'server µs', 'processes µs'],
      ...['server core', 'clients core', 'others', 'log bytes', 'requests per commit'],
    ],
    lines: lines.toSorted(([a = '', m], [b = '', n]) => order(a) - order(b) || Number(m) - Number(n)),
  };

  function order(what: string): number {
    return found.findIndex((one) => one.what === what);
  }
}
