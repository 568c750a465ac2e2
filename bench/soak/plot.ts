import { grouped } from '../measure/figures.ts';
import { escaped, MUTED, picture, round } from '../report/svg.ts';
import type { Point } from './slope.ts';

/** A line without a label is drawn in grey, behind the labelled ones. */
export interface TimeLine {
  readonly label: string;
  readonly points: readonly Point[];
}

export interface TimePlot {
  readonly title: string;
  readonly unit: string;
  readonly scale: 'linear' | 'logarithmic';
  readonly lines: readonly TimeLine[];
  /** Times to mark, in seconds. */
  readonly marks: readonly number[];
}

const WIDTH = 960;
const HEIGHT = 320;
const LEFT = 70;
const RIGHT = 20;
const TOP = 60;
const BOTTOM = 45;
const COLORS = ['#2563eb', '#dc2626', '#16a34a', '#9333ea', '#ea580c', '#0891b2'];
/** Steps of a time axis, in minutes. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 240];

/** Lines over a linear axis of minutes, with vertical marks behind them; NaN leaves a gap. */
export function drawTime({ title, unit, scale, lines, marks }: TimePlot): string {
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value)).filter(Number.isFinite);
  const end = Math.max(1, ...lines.flatMap(({ points }) => points.map(({ at }) => at)));
  const most = Math.max(...values, 0) || 1;
  const steps = evenSteps(most);
  const highest = scale === 'linear' ? (steps.at(-1) ?? most) : most;
  const lowest = scale === 'linear' ? 0 : Math.min(...values.filter((value) => value > 0), highest);
  const place =
    scale === 'linear' ? (value: number) => value : (value: number) => Math.log10(Math.max(value, lowest));
  const span = place(highest) - place(lowest) || 1;
  const atX = (seconds: number) => round(LEFT + (seconds / end) * (WIDTH - LEFT - RIGHT));
  const atY = (value: number) =>
    round(HEIGHT - BOTTOM - ((place(value) - place(lowest)) / span) * (HEIGHT - TOP - BOTTOM));

  const ticks = scale === 'linear' ? steps : powers(lowest, highest);
  const levels = ticks.map(
    (value) =>
      `<path d="M${LEFT} ${atY(value)}H${WIDTH - RIGHT}" stroke="${MUTED}" stroke-dasharray="2 3"/>
<text x="${LEFT - 8}" y="${atY(value) + 4}" text-anchor="end">${value === 0 ? '0' : grouped(value)}</text>`,
  );
  const step = STEPS.find((each) => end / 60 / each <= 12) ?? 480;
  const minutes = Array.from({ length: Math.floor(end / 60 / step) + 1 }, (_, i) => i * step);
  const axis = minutes.map(
    (minute) =>
      `<text x="${atX(minute * 60)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${minute}</text>`,
  );
  const faults = marks.map((at) => `<path d="M${atX(at)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#e5e7eb"/>`);
  const named = lines.filter(({ label }) => label !== '');
  const curve = ({ points }: TimeLine, stroke: string) =>
    `<path d="${pathOf(points, atX, atY)}" fill="none" stroke="${stroke}" stroke-width="1.5" stroke-linejoin="round"/>`;
  const curves = [
    ...lines.filter(({ label }) => label === '').map((line) => curve(line, MUTED)),
    ...named.map((line, i) => curve(line, color(i))),
  ];
  const legend = named.map(({ label }, i) => {
    const x = LEFT + i * 150;
    return `<rect x="${x}" y="34" width="12" height="4" fill="${color(i)}"/><text x="${x + 18}" y="40">${escaped(label)}</text>`;
  });
  const name = `<text x="${(WIDTH + LEFT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">minutes</text>`;
  return picture(WIDTH, HEIGHT, `${title} (${unit})`, [
    ...faults,
    ...levels,
    ...axis,
    name,
    ...curves,
    ...legend,
  ]);
}

function color(index: number): string {
  return COLORS[index % COLORS.length] ?? MUTED;
}

/** From zero in even steps, up to at least a value. */
function evenSteps(value: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [0.2, 0.5, 1, 2].map((part) => part * power).find((each) => value / each <= 6) ?? power;
  return Array.from({ length: Math.ceil(value / step - 1e-9) + 1 }, (_, i) => i * step);
}

/** The powers of ten between two values, and the next lower one. */
function powers(lowest: number, highest: number): readonly number[] {
  const first = Math.ceil(Math.log10(lowest) - 1e-9);
  const last = Math.floor(Math.log10(highest) + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 10 ** (first + i));
}

function pathOf(
  points: readonly Point[],
  atX: (at: number) => number,
  atY: (value: number) => number,
): string {
  let path = '';
  let isDrawing = false;
  for (const { at, value } of points) {
    if (Number.isFinite(value)) path += `${isDrawing ? 'L' : 'M'}${atX(at)} ${atY(value)}`;
    isDrawing = Number.isFinite(value);
  }
  return path;
}
