import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatValue } from '../data/format.ts';

/** A line of a plot. */
interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** The colour of its meaning; by default one by its place. */
  readonly tone?: 'good' | 'warn' | 'bad' | undefined;
}

interface PlotProps {
  readonly title: string;
  readonly unit: string;
  /** Milliseconds since the epoch, oldest first. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** Bounds of the time axis, in milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Lower bound for the maximum of the value axis. */
  readonly least?: number;
}

const HEIGHT = 140;
/** Key that links all plots of a page: the pointer over one shows the values of all. */
const SYNC = 'portico';

/** Lines over time. The pointer, or the arrow keys, read the values of all plots at the same moment. */
export function Plot({ title, unit, times, lines, from, to, least = 0 }: PlotProps) {
  const place = useRef<HTMLDivElement | null>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const theme = useTheme();
  const labels = lines.map(({ label }) => label).join('\n');
  const tones = lines.map(({ tone }) => tone ?? '').join();
  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((time) => time / 1_000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData,
    [times, lines],
  );
  const range = useRef({ from, to, least });
  range.current = { from, to, least };
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const axis = {
      stroke: theme.soft,
      font: '11px system-ui, sans-serif',
      grid: { stroke: theme.line, width: 1 },
      ticks: { show: false },
    };
    const created = new uPlot(
      {
        width: Math.max(parent.clientWidth, 120),
        height: HEIGHT,
        padding: [10, 6, 0, 0],
        cursor: {
          sync: { key: SYNC, setSeries: false },
          drag: { x: false, y: false },
          points: { size: 6 },
          y: false,
        },
        legend: { show: true, live: true },
        scales: {
          x: { time: true, range: () => [range.current.from / 1_000, range.current.to / 1_000] },
          y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, range.current.least) || 1] },
        },
        axes: [
          { ...axis, size: 26, space: 70, values: clock, grid: { show: false } },
          {
            ...axis,
            size: 54,
            space: 28,
            values: (_plot, splits) => splits.map((value) => formatValue(value, unit)),
          },
        ],
        series: [
          { label: 'Time', value: (_plot, value) => (value === null ? '' : clockOf(value)) },
          ...labels.split('\n').map((label, i) => ({
            label,
            stroke: colourOf(theme, tones.split(',')[i], i),
            width: 1.5,
            spanGaps: false,
            // Without a point, a value between two gaps would be invisible.
            points: { show: true, size: 4, filter: alone },
            ...(labels.includes('\n') ? {} : { fill: `${theme.colours[0]}1f` }),
            value: (_plot: uPlot, value: number | null, series: number) => read(value, series),
          })),
        ],
      },
      latest.current,
      parent,
    );
    /** Without a pointer, the latest value is shown. */
    function read(value: number | null, series: number): string {
      const shown = value ?? (created?.cursor.idx == null ? latest.current[series]?.at(-1) : undefined);
      return shown === null || shown === undefined ? '–' : formatValue(shown, unit);
    }
    plot.current = created;
    created.setData(latest.current);
    const observer = new ResizeObserver(() => {
      created.setSize({ width: Math.max(parent.clientWidth, 120), height: HEIGHT });
    });
    observer.observe(parent);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = undefined;
    };
  }, [theme, labels, tones, unit]);

  useEffect(() => plot.current?.setData(data), [data]);

  function move(step: number): void {
    const { current } = plot;
    if (current === undefined || times.length === 0) return;
    const index = Math.min(times.length - 1, Math.max(0, (current.cursor.idx ?? times.length) + step));
    const left = current.valToPos((times[index] ?? 0) / 1_000, 'x');
    // The third parameter, missing in the types, also moves the other plots.
    const set: (at: { left: number; top: number }, fire: boolean, publish: boolean) => void =
      current.setCursor;
    set({ left, top: 10 }, true, true);
  }

  return (
    <figure
      className="plot"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys need the focus.
      tabIndex={0}
      aria-label={`${title}; arrow keys read values`}
      onKeyDown={(event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        move(step);
      }}
    >
      <figcaption>{title}</figcaption>
      <div ref={place} className="plot-area" />
    </figure>
  );
}

/** Selects the points without a neighbour to connect to. */
const alone: uPlot.Series.Points.Filter = (plot, series) => {
  const values = plot.data[series] ?? [];
  const isGap = (i: number) => values[i] === null || values[i] === undefined;
  return Array.from(values.keys()).filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1));
};

const HOURS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const SECONDS = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

const clockOf = (seconds: number) => SECONDS.format(new Date(seconds * 1_000));

function clock(plot: uPlot, splits: readonly number[]): string[] {
  const { min = 0, max = 0 } = plot.scales.x ?? {};
  if ((max ?? 0) - (min ?? 0) < 300) return splits.map(clockOf);
  return splits.map((seconds) => HOURS.format(new Date(seconds * 1_000)));
}

/** The colours of a plot; a canvas cannot use CSS custom properties. */
interface Theme {
  readonly soft: string;
  readonly line: string;
  readonly colours: readonly string[];
}

/** The places of the colours that mean something. */
const TONES: Readonly<Record<string, number>> = { good: 1, warn: 2, bad: 4 };

function colourOf({ colours, soft }: Theme, tone: string | undefined, place: number): string {
  return colours[TONES[tone ?? ''] ?? place % colours.length] ?? soft;
}

const DARK = matchMedia('(prefers-color-scheme: dark)');

const LIGHT_THEME: Theme = {
  soft: '#5b6472',
  line: '#e8ebf0',
  colours: ['#3451d1', '#0d8a72', '#b26a00', '#8b3fb8', '#c2334d', '#4d6b8a'],
};
const DARK_THEME: Theme = {
  soft: '#98a2b3',
  line: '#262c36',
  colours: ['#8da2ff', '#4cc9ae', '#e5a84b', '#c98bf0', '#ff8a9b', '#9db8d6'],
};

const themeOf = () => (DARK.matches ? DARK_THEME : LIGHT_THEME);

/** Follows the system's light or dark scheme. */
function useTheme(): Theme {
  const [theme, setTheme] = useState(themeOf);
  useEffect(() => {
    const follow = () => setTheme(themeOf());
    DARK.addEventListener('change', follow);
    return () => DARK.removeEventListener('change', follow);
  }, []);
  return theme;
}

const SPARK_WIDTH = 120;
const SPARK_HEIGHT = 30;
/** Number of points; more would be indistinguishable. */
const POINTS = 48;

/** The course of the sum of some columns as a small decorative line. */
export function Spark({ lines }: { lines: readonly (readonly (number | null)[])[] }) {
  const points = summed(lines);
  const high = Math.max(...points, 0);
  if (points.length < 2 || high === 0) return <svg className="spark" aria-hidden="true" />;
  const x = (i: number) => ((i / (points.length - 1)) * SPARK_WIDTH).toFixed(1);
  const y = (value: number) => (SPARK_HEIGHT - 1 - (value / high) * (SPARK_HEIGHT - 3)).toFixed(1);
  const line = points.map((value, i) => `${x(i)},${y(value)}`).join(' L');
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path
        fill="currentColor"
        opacity="0.1"
        d={`M0,${SPARK_HEIGHT} L${line} L${SPARK_WIDTH},${SPARK_HEIGHT} Z`}
      />
      <path className="spark-line" fill="none" stroke="currentColor" strokeWidth="1.5" d={`M${line}`} />
    </svg>
  );
}

/** The means of equal parts, without gaps. */
function summed(lines: readonly (readonly (number | null)[])[]): readonly number[] {
  const length = Math.max(0, ...lines.map((line) => line.length));
  const size = Math.max(1, Math.ceil(length / POINTS));
  const points: number[] = [];
  for (let from = 0; from < length; from += size) {
    const sums = lines.map((line) => {
      const known = line.slice(from, from + size).filter((value) => value !== null);
      return known.length === 0 ? undefined : known.reduce((sum, each) => sum + each, 0) / known.length;
    });
    const known = sums.filter((sum) => sum !== undefined);
    if (known.length > 0) points.push(known.reduce((sum, each) => sum + each, 0));
  }
  return points;
}
