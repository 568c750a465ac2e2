import type { Finding, Table, Target } from '../row.ts';
import { type Measured, type Round, valuesOf } from './compare.ts';
import { grouped, range } from './figures.ts';
import { median, ratio } from './statistics.ts';

/** The results of each contender: medians of its rounds. */
export function rateTable(measured: readonly Measured[], title = ''): Table {
  return {
    head: [
      title,
      'requests/s',
      'lowest-highest',
      'p50 ms',
      'p99 ms',
      'paced p99 ms',
      'CPU us/request',
      'peak MB',
    ],
    lines: measured.map((one) => {
      const perSecond = valuesOf(one, 'perSecond');
      const middle = (key: keyof Round) => median(valuesOf(one, key));
      return [
        one.label,
        grouped(median(perSecond)),
        range(perSecond),
        middle('p50').toFixed(2),
        middle('p99').toFixed(2),
        middle('pacedP99').toFixed(2),
        middle('cpu').toFixed(1),
        middle('memory').toFixed(0),
      ];
    }),
  };
}

/** One contender relative to each of the others: a higher rate, a lower p99 and less CPU time are better. */
export function ratioTable(one: Measured, others: readonly Measured[], title = one.label): Table {
  return {
    head: [
      `${title} /`,
      'rate',
      'lowest-highest',
      'p99',
      'lowest-highest',
      'paced p99',
      'lowest-highest',
      'CPU/request',
    ],
    lines: others.map((other) => [
      other.label,
      ...ratioCells(one, other, 'perSecond'),
      ...ratioCells(one, other, 'p99'),
      ...ratioCells(one, other, 'pacedP99'),
      times(ratioOf(one, other, 'cpu').value),
    ]),
  };
}

function ratioCells(
  one: Measured,
  other: Measured,
  key: 'perSecond' | 'p99' | 'pacedP99',
): readonly [string, string] {
  const { value, spread } = ratioOf(one, other, key);
  return [times(value), range(spread, (end) => end.toFixed(2))];
}

function times(value: number): string {
  return `${value.toFixed(2)}x`;
}

/** The ratio of two rates, and its target. */
export function rateFinding(one: Measured, other: Measured, target: Target): Finding {
  const what = `${one.label} / ${other.label}`;
  return { what, unit: 'x', ...ratioOf(one, other, 'perSecond'), target };
}

/**
 * The ratio of two CPU costs of a request, and its target. It tells nearly equal servers apart better than
 * their rates, because a busy host lowers the rate of the server under load at that moment.
 */
export function cpuFinding(one: Measured, other: Measured, target: Target): Finding {
  const what = `CPU per request of ${one.label} / ${other.label}`;
  return { what, unit: 'x', ...ratioOf(one, other, 'cpu'), target };
}

/** The kinds of load under which a p99 is measured. */
const P99S = { p99: 'p99', pacedP99: 'paced p99' } as const;

/**
 * The p99 of one contender, at full and at paced load, relative to the lowest among its peers in the same
 * run. Throws without peers.
 */
export function p99Findings(one: Measured, peers: readonly Measured[], atMost: number): readonly Finding[] {
  const keys = Object.keys(P99S) as (keyof typeof P99S)[];
  return keys.flatMap((key) => {
    const p99 = (peer: Measured) => median(valuesOf(peer, key));
    const [best] = peers.toSorted((a, b) => p99(a) - p99(b));
    if (best === undefined) throw new Error(`${one.label} has no peer to compare its p99 with`);
    if (Number.isNaN(p99(one))) return [];
    const what = `${P99S[key]} of ${one.label} / of the best peer, ${best.label}`;
    return [{ what, unit: 'x' as const, ...ratioOf(one, best, key), target: { atMost } }];
  });
}

function ratioOf(one: Measured, other: Measured, key: keyof Round) {
  return ratio(valuesOf(one, key), valuesOf(other, key));
}
