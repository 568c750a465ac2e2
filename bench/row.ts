import type { Workbench } from './workbench.ts';

/** One path that is measured side by side with its peers. */
export interface Row {
  /** What `--only` calls it. */
  readonly name: string;
  readonly title: string;
  /** What is sent, to whom, and what makes the peers fair, in a few sentences of Markdown. */
  readonly about: string;
  /** Fails when a server does not answer as it should. Whatever it starts stops with the workbench it is given. */
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

/** One figure that matters, with what it should be. */
export interface Finding {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
  /** The lowest and the highest of the rounds. */
  readonly spread?: readonly [low: number, high: number] | undefined;
  readonly target?: Target | undefined;
  /** What else belongs to it. */
  readonly remark?: string;
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
  /** On a logarithmic axis. */
  readonly x: { readonly label: string; readonly values: readonly number[] };
  readonly lines: readonly { readonly label: string; readonly values: readonly number[] }[];
}
