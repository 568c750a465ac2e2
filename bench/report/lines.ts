import { grouped } from '../measure/figures.ts';
import type { LinePlot } from '../row.ts';
import { ACCENT, escaped, MUTED, picture, round } from './svg.ts';

const WIDTH = 720;
const HEIGHT = 280;
const LEFT = 80;
const RIGHT = 50;
const TOP = 40;
const BOTTOM = 50;

/** Values over a logarithmic axis. The vertical axis begins at zero, so that slopes are not exaggerated. */
export function drawLines({ title, unit, x, lines }: LinePlot): string {
  const [first = 1] = x.values;
  const last = x.values.at(-1) ?? first;
  const highest = Math.max(...lines.flatMap(({ values }) => [...values]));
  const atX = (value: number) =>
    round(LEFT + (Math.log(value / first) / (Math.log(last / first) || 1)) * (WIDTH - LEFT - RIGHT));
  const atY = (value: number) => round(HEIGHT - BOTTOM - (value / highest) * (HEIGHT - TOP - BOTTOM));
  const levels = [0, highest / 2, highest].map(
    (value) =>
      `<path d="M${LEFT} ${atY(value)}H${WIDTH - RIGHT}" stroke="${MUTED}" stroke-dasharray="2 3"/>
<text x="${LEFT - 8}" y="${atY(value) + 4}" text-anchor="end">${value === 0 ? '0' : grouped(value)}</text>`,
  );
  const ticks = x.values.map(
    (value) =>
      `<text x="${atX(value)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${value.toLocaleString('en-US')}</text>`,
  );
  const curves = lines.map(({ values }, index) => {
    const color = index === 0 ? ACCENT : MUTED;
    const points = values.map((value, i) => `${atX(x.values[i] ?? first)},${atY(value)}`);
    const dots = points.map((point) => {
      const [cx, cy] = point.split(',');
      return `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${color}"/>`;
    });
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}`;
  });
  const axis = `<text x="${(WIDTH + LEFT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${escaped(x.label)}</text>`;
  return picture(WIDTH, HEIGHT, `${title} (${unit})`, [...levels, ...ticks, axis, ...curves]);
}
