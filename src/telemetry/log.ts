import { type DestinationStream, type Logger, pino } from 'pino';
import { describeError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { hideSecrets, type SecretTexts } from '../core/redaction.ts';
import { type Paint, paintFor, printable, printableLines, type Style } from '../core/text.ts';
import type { LogTail } from './loggers.ts';

interface LogOptions {
  /** A pino level, or `silent`. */
  readonly level: string;
  /** Where entries go, one JSON line each; standard output when absent, made readable on a terminal. */
  readonly stream?: DestinationStream | undefined;
  /** Secrets to redact in every line; credentials in headers always are. */
  readonly secrets?: SecretTexts | undefined;
  /** Keeps the last entries, redacted as they are written. */
  readonly tail?: LogTail | undefined;
}

/** Levels by their names: a log is read by people and by programs that know no pino. */
const formatters = { level: (label: string) => ({ level: label }) };

/** pino marks an error while it reads it, and throws for one that is frozen. */
const serializers = {
  err(error: Error): unknown {
    try {
      return pino.stdSerializers.err(error);
    } catch {
      return { type: 'Error', message: describeError(error), stack: stackOf(error) };
    }
  },
};

function stackOf(error: Error): string {
  try {
    return String(error.stack);
  } catch {
    return '';
  }
}

/** Opens the process's log. */
export async function openLog(options: LogOptions): Promise<Logger> {
  const { level, secrets = { texts: [] }, tail } = options;
  const destination = options.stream ?? standardOutput();
  const clean = lineCleaner(secrets);
  const streamWrite = tail === undefined ? clean : (line: string) => tail.add(clean(line));
  return pino(
    { level, base: null, timestamp: isoTimestamp(), hooks: { streamWrite }, formatters, serializers },
    destination,
  );
}

let gathering: GatheringStream | undefined;

function standardOutput(): DestinationStream {
  if (!process.stdout.isTTY) {
    if (gathering === undefined) {
      gathering = gatherWrites(pino.destination({ dest: 1, sync: true }));
      // Also when an uncaught error ends the process.
      process.once('exit', gathering.flushSync);
    }
    return gathering;
  }
  const terminal = terminalLog();
  terminal.begin();
  return terminal;
}

const NAMES = '(?:proxy-)?authorization|(?:set-)?cookie|x-webhook-token';
const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
/** A header among fields or in a list of names and values, in whatever object an error brought it. */
const FIELD = new RegExp(String.raw`("(?:${NAMES})"[:,])(?:${TEXT}|\[(?:${TEXT},?)*\])`, 'gi');
/** A header in a text, such as the head of a request. */
const HEAD = new RegExp(String.raw`(?<=\\n|\b)(${NAMES}): ?[^"\\]+`, 'gi');
/** A cheap test for the names above; few lines match. */
const SUSPICIOUS = /authorization|cookie|x-webhook-token/i;
const LITERALS = new RegExp(TEXT, 'g');
const NUMBER = /^[\d.eE+-]+$/;

/** Few lines have anything else. */
const PLAIN = /^[\x20-\x7e]*\n?$/;

/**
 * Creates the function that redacts a log line, which is one JSON object: the values of header fields with credentials,
 * at any depth, and the known secrets. What a terminal obeys is escaped in it, since people look at logs on one.
 */
export function lineCleaner(secrets: SecretTexts): (line: string) => string {
  let known: readonly string[] | undefined;
  let hide: (line: string) => string;
  return (line) => {
    if (secrets.texts !== known) {
      known = secrets.texts;
      hide = hiderOf(known);
    }
    const clean = SUSPICIOUS.test(line)
      ? hide(line.replace(FIELD, '$1"******"').replace(HEAD, '$1: ******'))
      : hide(line);
    return PLAIN.test(clean) ? clean : printableLines(clean);
  };
}

function hiderOf(secrets: readonly string[]): (line: string) => string {
  // In a line they stand as JSON writes them.
  const written = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const hide = (text: string) => hideSecrets(text, written);
  // One that looks like a number must not be taken out of a number.
  if (!secrets.some((secret) => NUMBER.test(secret))) return hide;
  return (line) => line.replace(LITERALS, hide);
}

/** What is gathered is written at once when it gets longer than this, in characters. */
const MAX_GATHERED = 64 * 1024;

/** A destination that gathers; its owner flushes it at the end. */
interface GatheringStream extends DestinationStream {
  /** Writes what is gathered now. */
  flushSync(): void;
}

/**
 * Gathers what is written in one tick of the event loop and passes it on at its end: under load a system call
 * per entry costs more than the entry.
 */
export function gatherWrites(destination: DestinationStream): GatheringStream {
  let gathered = '';
  let scheduled = false;
  const flush = () => {
    scheduled = false;
    const text = gathered;
    gathered = '';
    if (text !== '') destination.write(text);
  };
  return {
    write(text) {
      gathered += text;
      if (gathered.length > MAX_GATHERED) flush();
      else if (!scheduled) {
        scheduled = true;
        setImmediate(flush);
      }
    },
    flushSync: flush,
  };
}

/** How many entries of one message are logged within a second, as they come. */
const MAX_PER_SECOND = 100;
const SECOND = 1_000;

type Level = 'debug' | 'info' | 'warn' | 'error';

/** Logs one message again and again; disposing of it logs the number suppressed so far. */
interface LimitedEntry extends Disposable {
  /** Logs an entry, or counts it once the second has had its number of entries. */
  write(fields: Readonly<Record<string, unknown>>): void;
}

/**
 * Bounds the entries of one message whose rate the clients choose: the first hundred of a second are logged one by one,
 * the others by one entry at the end of that second, with their number as `suppressed`.
 */
export function limitedEntry<L extends Level = 'info'>(
  log: Pick<Logger, L>,
  message: string,
  level: L = 'info' as L,
): LimitedEntry {
  let logged = 0;
  let suppressed = 0;
  let timer: NodeJS.Timeout | undefined;

  function endSecond(): void {
    timer = undefined;
    logged = 0;
    if (suppressed > 0) log[level]({ suppressed }, message);
    suppressed = 0;
  }

  return {
    write(fields) {
      timer ??= setTimeout(endSecond, SECOND).unref();
      if (logged < MAX_PER_SECOND) {
        logged++;
        log[level](fields, message);
      } else suppressed++;
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      endSecond();
    },
  };
}

/** A pino timestamp in ISO 8601, made once per millisecond: under load many entries share one. */
function isoTimestamp(now: () => number = Date.now): () => string {
  let madeAt: number | undefined;
  let made = '';
  return () => {
    const at = now();
    if (at !== madeAt) {
      madeAt = at;
      made = `,"time":"${new Date(at).toISOString()}"`;
    }
    return made;
  };
}

/** A log on a terminal: one readable line per entry, and one for each line of a stack. */
interface TerminalLog extends DestinationStream {
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
