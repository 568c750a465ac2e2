import type { Workbench } from './workbench.ts';

/** One benchmark: Portico and its peers under the same load. */
export interface Row {
  /** The name for `--only`. */
  readonly name: string;
  readonly title: string;
  /** Requests, servers and the conditions that make the comparison fair, in a few sentences of Markdown. */
  readonly about: string;
  /**
   * Rejects if a server does not answer as expected. Disposing of the workbench stops everything that it
   * started.
   */
  run(bench: Workbench): Promise<RowResult>;
}

export interface RowResult {
  readonly tables: readonly Table[];
  readonly findings: readonly Finding[];
  readonly plots: readonly Plot[];
  readonly notes: readonly string[];
}

export interface Table {
  readonly head: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

/** One figure and its target. */
export interface Finding {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
  /** The lowest and the highest value of the rounds. */
  readonly spread?: readonly [low: number, high: number] | undefined;
  readonly target?: Target | undefined;
}

/** `x` is a ratio. */
export type Unit = 'x' | 'ms' | 'MB';

export type Target = { readonly atLeast: number } | { readonly atMost: number };

export type Plot = BarPlot | LinePlot;

export interface BarPlot {
  readonly kind: 'bars';
  readonly file: string;
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly { readonly label: string; readonly values: readonly number[] }[];
}

export interface LinePlot {
  readonly kind: 'lines';
  readonly file: string;
  readonly title: string;
  readonly unit: string;
  /** The logarithmic axis. */
  readonly x: { readonly label: string; readonly values: readonly number[] };
  readonly lines: readonly { readonly label: string; readonly values: readonly number[] }[];
}
