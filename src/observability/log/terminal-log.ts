import type { DestinationStream } from 'pino';
import { type Paint, paintFor, type Style } from '../../core/paint.ts';
import { printable } from '../../core/quote.ts';
import { isRecord } from '../../core/record.ts';

/** A log on a terminal: one readable line per entry, and one for each line of a stack. */
export interface TerminalLog extends DestinationStream {
  /** From now on shows entries at info too. */
  begin(): void;
}

const LEVELS: Readonly<Record<string, Style>> = {
  trace: 'gray',
  debug: 'blue',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'bgRed',
};

/** Opens a log on the terminal of standard output. Until `begin` it leaves out what is at info: a banner says it better. */
export function terminalLog(): TerminalLog {
  const paint = paintFor(process.stdout);
  let begun = false;
  return {
    write(line) {
      if (begun || !line.startsWith('{"level":"info"')) process.stdout.write(readable(line, paint));
    },
    begin() {
      begun = true;
    },
  };
}

/** An entry, which is one line of JSON, as people read it. Nothing in it can reach the terminal unescaped. */
export function readable(line: string, paint: Paint): string {
  const entry = parsed(line);
  if (entry === undefined) return `${printable(line.trimEnd())}\n`;
  const { level, time, logger, msg, err, ...fields } = entry;
  const name = String(level);
  const text = [logger, msg].filter((part) => part !== undefined).join(': ');
  const { lines, more } = errorOf(err);
  const rest = { ...fields, ...more };
  return [
    `[${clockTime(time)}] ${paint(LEVELS[name] ?? 'bold', printable(name.toUpperCase()))}: ${paint('cyan', printable(text))}`,
    ...(Object.keys(rest).length === 0 ? [] : [` ${paint('gray', printable(JSON.stringify(rest)))}`]),
    ...lines.map((each) => `\n    ${printable(each)}`),
    '\n',
  ].join('');
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    return isRecord(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of an error's stack, and what else is known of it. */
function errorOf(err: unknown): { readonly lines: readonly string[]; readonly more: object } {
  if (!isRecord(err) || typeof err.stack !== 'string')
    return { lines: [], more: err === undefined ? {} : { err } };
  const { type: _type, message: _message, stack, ...more } = err;
  return { lines: stack.split('\n'), more: Object.keys(more).length === 0 ? {} : { err: more } };
}

/** The time of day here, to the millisecond. */
function clockTime(time: unknown): string {
  const at = new Date(String(time));
  if (Number.isNaN(at.getTime())) return printable(String(time));
  const two = (part: number) => String(part).padStart(2, '0');
  const seconds = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
  return `${seconds}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}
