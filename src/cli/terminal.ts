import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { paintedLines, paintFor, printable, printableLines } from '../core/text.ts';
import { type EventNames, formatSpan } from '../inbox/delivery.ts';
import type { CommandIo } from './command.ts';

type Output = Pick<CommandIo, 'stdout'>;

/** Writes text or JSON to standard output; resolves when it can take more. */
export function print(io: Output, text: string): Promise<void> {
  return write(io, printableLines(text));
}

/** Writes lines that contain colours. */
export function printPainted(io: Output, text: string): Promise<void> {
  return write(io, paintedLines(text));
}

/** Writes a value as one line of JSON. */
export function printJson(io: Output, value: unknown): Promise<void> {
  return print(io, `${JSON.stringify(value)}\n`);
}

/** Writes data unchanged; on a terminal, escaped. */
export function printData(io: Output, data: string | Uint8Array): Promise<void> {
  if (!io.stdout.isTTY) return write(io, data);
  return write(io, printableLines(typeof data === 'string' ? data : Buffer.from(data).toString()));
}

async function write({ stdout }: Output, data: string | Uint8Array): Promise<void> {
  if (!stdout.write(data)) await once(stdout, 'drain');
}

/** From now on, ends the process when standard output fails; with code 0 after `| head`. */
export function endWithReader(io: CommandIo): void {
  io.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') io.exit(0);
    note(io, `portico: standard output failed: ${error.message}`);
    io.exit(1);
  });
}

export function note({ stderr }: Pick<CommandIo, 'stderr'>, text: string): void {
  stderr.write(`${printableLines(text)}\n`);
}

/** `1 delivery`, `5,000 deliveries`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

/** Asks on the terminal; only y or yes confirms. True without asking if there is no terminal. */
export async function confirmed(
  { stdin, stderr }: CommandIo,
  question: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!stdin.isTTY) return true;
  using terminal = createInterface({ input: stdin, output: stderr });
  const { promise, resolve } = Promise.withResolvers<undefined>();
  // Ctrl+C and Ctrl+D.
  terminal.on('SIGINT', () => resolve(undefined)).on('close', () => resolve(undefined));
  const asked = terminal.question(`${printable(question)} [y/N] `, { signal }).catch(() => undefined);
  const answer = await Promise.race([asked, promise]);
  return /^\s*y(?:es)?\s*$/i.test(answer ?? '');
}

/** The exit code of an interrupted command: that of shells for SIGINT. */
export const INTERRUPTED = 130;

/** How long another signal is ignored, in milliseconds: some wrappers signal a process and its group. */
const ECHO = 1_000;

/**
 * A signal that the first Ctrl+C or SIGTERM aborts, instead of ending the process. The second ends the
 * process at once. Disposing of it restores the default.
 */
export function interruption(io: CommandIo): AbortSignal & Disposable {
  const controller = new AbortController();
  let first: number | undefined;
  const onSignal = () => {
    first ??= performance.now();
    if (performance.now() - first > ECHO) io.exit(INTERRUPTED);
    controller.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) io.on(name, onSignal);
  return Object.assign(controller.signal, {
    [Symbol.dispose]() {
      // An echo of the first signal must not end the process before its report is printed.
      if (first !== undefined) return;
      for (const name of ['SIGINT', 'SIGTERM'] as const) io.off(name, onSignal);
    },
  });
}

interface ProgressScreen extends Pick<CommandIo, 'env'> {
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
}

/** The progress of a long operation. Disposing of it clears the line. */
export interface Progress extends Disposable {
  update(done: number): void;
}

/** Minimum time between two updates on a terminal, in milliseconds. */
const REFRESH = 100;
/** Minimum time between two lines elsewhere, and before the first, in milliseconds. */
const REPORT = 3_000;

/**
 * Shows progress towards `total` (undefined: unknown). On a terminal it updates one line; elsewhere it prints
 * a line every three seconds. `doing` begins the line. `now` is a clock in milliseconds.
 */
export function showProgress(
  { stderr: screen, env }: ProgressScreen,
  doing: string,
  total: number | undefined,
  now: () => number = () => performance.now(),
): Progress {
  const paint = paintFor(screen, env);
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

export interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  /** Aligns to the right, as for numbers. Default: false. */
  readonly right?: boolean;
  /** Minimum width, in columns, to which a table may cut this one. Default: it is never cut. */
  readonly least?: number;
  /** Order in which columns are omitted if cutting is not enough, highest first. Default: never. */
  readonly dispensable?: number;
}

interface Sized<T> {
  readonly column: Column<T>;
  readonly width: number;
}

const GAP = 2;

/** Renders a table, at most `width` columns wide if possible. Default: as wide as its content. */
export function renderTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width = Number.POSITIVE_INFINITY,
): readonly string[] {
  const sized = columns.map((column) => ({
    column,
    width: Math.max(column.title.length, ...rows.map((row) => widthOf(cell(column.text(row))))),
  }));
  const fitted = fit(sized, width);
  const line = (text: (column: Column<T>) => string) =>
    fitted
      .map(({ column, width }) => pad(cell(text(column), width), width, column.right))
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(({ title }) => title), ...rows.map((row) => line(({ text }) => text(row)))];
}

/** Cuts the widest columns first; if that is not enough, omits a column and starts over. */
function fit<T>(columns: readonly Sized<T>[], width: number): readonly Sized<T>[] {
  const cut = columns.map((each) => ({ ...each }));
  while (totalOf(cut) > width) {
    const [widest] = cut
      .filter(({ column, width }) => width > (column.least ?? width))
      .sort((a, b) => b.width - a.width);
    if (widest === undefined) break;
    widest.width--;
  }
  const most = Math.max(...columns.map(({ column }) => column.dispensable ?? 0));
  if (totalOf(cut) <= width || most === 0) return cut;
  return fit(
    columns.filter(({ column }) => column.dispensable !== most),
    width,
  );
}

function totalOf(columns: readonly { readonly width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + width + GAP, -GAP);
}

// Characters that terminals draw two columns wide (Unicode Standard Annex 11, roughly).
const WIDE = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{Emoji_Presentation}\uff01-\uff60]/u;
const NONE = /\p{M}/u;

/** Width of a character in terminal columns. */
function columnsOf(character: string): number {
  if (NONE.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

export function widthOf(text: string): number {
  // Most texts are ASCII.
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** Untrusted text as a table cell, cut to a width in columns. */
export function cell(text: string, width = Number.POSITIVE_INFINITY): string {
  const shown = printable(text);
  if (widthOf(shown) <= width) return shown;
  let cut = '';
  let taken = 1;
  for (const character of shown) {
    taken += columnsOf(character);
    if (taken > width) break;
    cut += character;
  }
  return `${cut}…`;
}

/** The event by Portico's name, and the sender's if that differs; undefined without an event. */
export function eventText({ event, senderEvent }: EventNames): string | undefined {
  if (event === null) return undefined;
  return senderEvent == null ? event : `${event} (${senderEvent})`;
}

/** Pads a text with spaces to a width in columns; `right` aligns it to the right. */
export function pad(text: string, width: number, right = false): string {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)));
  return right ? spaces + text : text + spaces;
}
