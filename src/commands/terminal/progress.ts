import { type Paint, paintedLines, paintFor } from '../../core/paint.ts';
import { formatSpan } from '../../inbox/moment.ts';

/** The stream that progress is written to. */
export interface ProgressScreen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Progress of a long operation; disposing of it clears the line. */
export interface Progress extends Disposable {
  update(done: number): void;
}

/** Minimum time between two updates of the line on a terminal, in milliseconds. */
const REFRESH = 100;
/** Minimum time between two lines elsewhere, and before the first, in milliseconds. */
const REPORT = 3_000;

/**
 * Shows progress towards `total` (undefined: not known): on a terminal in one line that changes, elsewhere with a
 * line every three seconds. `doing` is the start of the line. `now` is a clock in milliseconds.
 */
export function showProgress(
  doing: string,
  total: number | undefined,
  screen: ProgressScreen = process.stderr,
  now: () => number = () => performance.now(),
  paint: Paint = paintFor(screen),
): Progress {
  const began = now();
  const terminal = screen.isTTY === true;
  let last = terminal ? Number.NEGATIVE_INFINITY : began;
  return {
    update(done) {
      const at = now();
      if (at - last < (terminal ? REFRESH : REPORT)) return;
      last = at;
      const line = paintedLines(`${paint('dim', doing)} ${progressText(done, total, at - began)}`);
      screen.write(terminal ? `\r\x1b[K${line}` : `${line}\n`);
    },
    [Symbol.dispose]() {
      if (terminal) screen.write('\r\x1b[K');
    },
  };
}

function progressText(done: number, total: number | undefined, elapsed: number): string {
  const number = done.toLocaleString('en-US');
  if (total === undefined) return number;
  const percent = Math.floor((100 * done) / Math.max(1, total));
  const left = done === 0 ? 0 : (elapsed / done) * (total - done);
  const rest = left < 1_000 ? '' : `, ${formatSpan(left)} left`;
  return `${number} of ${total.toLocaleString('en-US')} (${percent} %${rest})`;
}
