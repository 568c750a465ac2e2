import type { BarPlot, RowResult } from '../row.ts';
import { BARE } from '../servers/bare.ts';
import { type Measured, valuesOf } from './compare.ts';
import { p99Findings, rateFinding, rateTable, ratioTable } from './comparison.ts';
import { median } from './statistics.ts';

/** The targets of the first contender. */
export interface Targets {
  /** Minimum rate, relative to that of the peer with this label. Peers that a run omits are ignored. */
  readonly rate?: Readonly<Record<string, number>>;
  /** Maximum p99, relative to the lowest p99 among its peers in the same run. */
  readonly p99?: number;
}

export interface SummaryOptions {
  readonly measured: readonly Measured[];
  /** The file name of the plot. */
  readonly name: string;
  readonly title: string;
  readonly targets?: Targets;
  /**
   * Contenders that do less than the first one: their figures are shown, but they are not compared. Default:
   * bare `node:http`.
   */
  readonly ceilings?: readonly string[];
  readonly notes?: readonly string[];
}

/**
 * Tables, targets and plot of a comparison. The first contender is compared with all others except its own
 * variants, whose labels begin with its label and a comma.
 */
export function summarise(options: SummaryOptions): RowResult {
  const { measured, name, title, targets = {}, ceilings = [BARE], notes = [] } = options;
  const [first, ...others] = measured;
  if (first === undefined) throw new Error(`${name}: nothing was measured`);
  const compared = others.filter(({ label }) => !label.startsWith(`${first.label}, `));
  const peers = compared.filter(({ label }) => !ceilings.includes(label));
  const rates = compared.flatMap((other) => {
    const atLeast = targets.rate?.[other.label];
    return atLeast === undefined ? [] : [rateFinding(first, other, { atLeast })];
  });
  return {
    tables: [rateTable(measured), ratioTable(first, compared)],
    findings: targets.p99 === undefined ? rates : [...rates, ...p99Findings(first, peers, targets.p99)],
    plots: [ratePlot(measured, name, title)],
    notes: [...disturbance(measured), ...notes],
  };
}

/** Share of the server's core used by other programs above which the report mentions it, in percent. */
const DISTURBED = 5;

/** Reports that other programs used time of the servers' core. */
export function disturbance(measured: readonly Measured[]): readonly string[] {
  const shares = measured
    .flatMap((one) => valuesOf(one, 'disturbed'))
    .filter((share) => Number.isFinite(share));
  if (shares.length === 0 || Math.max(...shares) < DISTURBED) return [];
  const most = Math.max(...shares).toFixed(0);
  return [
    `Other programs took ${median(shares).toFixed(0)} % of the servers' core, ${most} % in the worst round.`,
  ];
}

export function ratePlot(measured: readonly Measured[], name: string, title: string): BarPlot {
  return {
    kind: 'bars',
    file: name,
    title,
    unit: 'requests/s',
    bars: measured.map((one) => ({ label: one.label, values: valuesOf(one, 'perSecond') })),
  };
}
