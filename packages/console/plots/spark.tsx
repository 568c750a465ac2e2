const WIDTH = 120;
const HEIGHT = 30;
/** Number of points; more would be indistinguishable. */
const POINTS = 48;

/** The course of the sum of some columns as a small decorative line. */
export function Spark({ lines }: { lines: readonly (readonly (number | null)[])[] }) {
  const points = summed(lines);
  const high = Math.max(...points, 0);
  if (points.length < 2 || high === 0) return <svg className="spark" aria-hidden="true" />;
  const x = (i: number) => ((i / (points.length - 1)) * WIDTH).toFixed(1);
  const y = (value: number) => (HEIGHT - 1 - (value / high) * (HEIGHT - 3)).toFixed(1);
  const line = points.map((value, i) => `${x(i)},${y(value)}`).join(' L');
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path fill="currentColor" opacity="0.1" d={`M0,${HEIGHT} L${line} L${WIDTH},${HEIGHT} Z`} />
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
