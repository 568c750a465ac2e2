import type { BarPlot, Finding, RowResult, Table, Target } from '../row.ts';
import type { Measured, Round } from './compare.ts';
import { median, ratio, spread } from './statistics.ts';

export interface SummaryOptions {
  readonly measured: readonly Measured[];
  /** The file name of the plot. */
  readonly name: string;
  readonly title: string;
  /** What the first contender should reach, by the label of a peer. */
  readonly targets?: Readonly<Record<string, number>>;
  readonly notes?: readonly string[];
}

/** Table, ratios and plot of a comparison; the first contender is compared with all others. */
export function summarise({ measured, name, title, targets = {}, notes = [] }: SummaryOptions): RowResult {
  const [first, ...peers] = measured;
  if (first === undefined) throw new Error(`${name}: nothing was measured`);
  return {
    tables: [rates(measured)],
    // Its own variants stand in the table.
    findings: peers
      .filter(({ label }) => !label.startsWith(`${first.label}, `))
      .map((peer) => {
        const atLeast = targets[peer.label];
        return rateRatio(first, peer, atLeast === undefined ? undefined : { atLeast });
      }),
    plots: [ratePlot(measured, name, title)],
    notes: [...disturbance(measured), ...notes],
  };
}

/** Above this share of the server's core, in percent, others are mentioned. */
const DISTURBED = 5;

/** Says so when the machine was not ours alone. */
export function disturbance(measured: readonly Measured[]): readonly string[] {
  const shares = measured
    .flatMap((one) => valuesOf(one, 'disturbed'))
    .filter((share) => Number.isFinite(share));
  if (shares.length === 0 || Math.max(...shares) < DISTURBED) return [];
  const most = Math.max(...shares).toFixed(0);
  return [
    `The machine was busy with other things: they took ${median(shares).toFixed(0)} % of the servers' core, ${most} % in the worst round.`,
  ];
}

export function rateRatio(one: Measured, other: Measured, target?: Target): Finding {
  return {
    what: `${one.label} / ${other.label}`,
    unit: 'x',
    ...ratio(valuesOf(one, 'perSecond'), valuesOf(other, 'perSecond')),
    target,
    remark: `by CPU time per request ${ratio(valuesOf(other, 'cpu'), valuesOf(one, 'cpu')).value.toFixed(2)}x`,
  };
}

export function rates(measured: readonly Measured[]): Table {
  const [first] = measured;
  const base = median(first === undefined ? [] : valuesOf(first, 'perSecond'));
  return {
    head: [
      '',
      'requests/s',
      'lowest-highest',
      'of the first',
      'p50 ms',
      'p99 ms',
      'CPU us/request',
      'peak MB',
    ],
    lines: measured.map((one) => {
      const perSecond = valuesOf(one, 'perSecond');
      const middle = (key: keyof Round) => median(valuesOf(one, key));
      return [
        one.label,
        grouped(median(perSecond)),
        spread(perSecond).map(grouped).join('-'),
        (median(perSecond) / base).toFixed(2),
        middle('p50').toFixed(2),
        middle('p99').toFixed(2),
        middle('cpu').toFixed(1),
        middle('memory').toFixed(0),
      ];
    }),
  };
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

export function valuesOf({ rounds }: Measured, key: keyof Round): readonly number[] {
  return rounds.map((round) => round[key]);
}

export function grouped(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}
