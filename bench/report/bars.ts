import { grouped } from '../measure/figures.ts';
import { median, spread } from '../measure/statistics.ts';
import type { BarPlot } from '../row.ts';
import { ACCENT, escaped, MUTED, picture, round } from './svg.ts';

const WIDTH = 720;
const LEFT = 230;
const RIGHT = 110;
const TOP = 36;
const STEP = 26;

/**
 * One bar per contender for its median, with a line from its lowest to its highest value; Portico's bars are
 * highlighted.
 */
export function drawBars({ title, unit, bars }: BarPlot): string {
  const longest = Math.max(...bars.flatMap(({ values }) => [...values]));
  const scale = (WIDTH - LEFT - RIGHT) / longest;
  const parts = bars.map(({ label, values }, index) => {
    const middle = median(values);
    const y = TOP + index * STEP;
    const [low, high] = spread(values).map((end) => round(LEFT + end * scale));
    const color = index === 0 || label.startsWith('Portico') ? ACCENT : MUTED;
    return `<text x="${LEFT - 8}" y="${y + 14}" text-anchor="end">${escaped(label)}</text>
<rect x="${LEFT}" y="${y + 2}" width="${round(middle * scale)}" height="16" rx="2" fill="${color}"/>
<path d="M${low} ${y + 10}H${high}M${low} ${y + 6}v8M${high} ${y + 6}v8" stroke="#222" fill="none"/>
<text x="${(high ?? 0) + 8}" y="${y + 14}">${grouped(middle)}</text>`;
  });
  return picture(WIDTH, TOP + bars.length * STEP + 12, `${title} (${unit})`, parts);
}
