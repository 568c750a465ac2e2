import { type DestinationStream, type Logger, pino } from 'pino';
import { describeError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { hideSecrets, type SecretTexts } from '../core/redaction.ts';
import { type Paint, paintFor, printable, printableLines, type Style } from '../core/text.ts';
import type { LogTail } from './loggers.ts';

interface LogOptions {
  /** A pino level, or `silent`. */
  readonly level: string;
  /** The destination of entries as lines of JSON; default standard output, formatted on a terminal. */
  readonly stream?: DestinationStream | undefined;
  /** Secrets to redact in every line; credentials in headers are always redacted. */
  readonly secrets?: SecretTexts | undefined;
  /** Keeps the last entries, redacted. */
  readonly tail?: LogTail | undefined;
}

/** Writes levels by name, which people and other programs understand. */
const formatters = { level: (label: string) => ({ level: label }) };

/** pino's serializer sets a property on the error, which throws for a frozen one. */
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
      // Also flushes when an uncaught error ends the process.
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
/** A header as a field of an object or in a list of names and values, as errors contain them. */
const FIELD = new RegExp(String.raw`("(?:${NAMES})"[:,])(?:${TEXT}|\[(?:${TEXT},?)*\])`, 'gi');
/** A header in a text, such as the head of a request. */
const HEAD = new RegExp(String.raw`(?<=\\n|\b)(${NAMES}): ?[^"\\]+`, 'gi');
/** A cheap test for the names above; few lines match. */
const SUSPICIOUS = /authorization|cookie|x-webhook-token/i;
const LITERALS = new RegExp(TEXT, 'g');
const NUMBER = /^[\d.eE+-]+$/;

/** Almost all lines match. */
const PLAIN = /^[\x20-\x7e]*\n?$/;

/**
 * Creates a function that redacts a log line, which is one JSON object: the values of header fields with
 * credentials, at any depth, and the known secrets. It also escapes terminal control characters, since logs
 * are read on terminals.
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
  // A line contains the secrets as JSON writes them.
  const written = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const hide = (text: string) => hideSecrets(text, written);
  // A secret that looks like a number must not be replaced inside a number.
  if (!secrets.some((secret) => NUMBER.test(secret))) return hide;
  return (line) => line.replace(LITERALS, hide);
}

/** Maximum length of gathered text, in characters; more is written immediately. */
const MAX_GATHERED = 64 * 1024;

/** A destination that gathers writes; its owner flushes it at the end. */
interface GatheringStream extends DestinationStream {
  flushSync(): void;
}

/** Passes on the writes of one turn of the event loop together: each system call costs more than an entry. */
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

/** Maximum number of entries of one message that are logged individually within a second. */
const MAX_PER_SECOND = 100;
const SECOND = 1_000;

type Level = 'debug' | 'info' | 'warn' | 'error';

/** Logs one message at a bounded rate; disposing of it logs the number suppressed so far. */
interface LimitedEntry extends Disposable {
  /** Logs an entry, or counts it if the second has reached its maximum. */
  write(fields: Readonly<Record<string, unknown>>): void;
}

/**
 * Bounds the entries of one message whose rate clients control: logs the first hundred of a second
 * individually, and the others as one entry at the end of the second, with their number as `suppressed`.
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

/** A pino timestamp in ISO 8601, formatted once per millisecond, since many entries share one under load. */
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
  /** Shows entries at level info from now on. */
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

/** Opens a log on the terminal. Until `begin` it omits level info, because the banner shows that. */
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

/** Formats an entry, a line of JSON, for people. Escapes everything that could control the terminal. */
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

/** The lines of an error's stack, and its other fields. */
function errorOf(err: unknown): { readonly lines: readonly string[]; readonly more: object } {
  if (!isRecord(err) || typeof err.stack !== 'string')
    return { lines: [], more: err === undefined ? {} : { err } };
  const { type: _type, message: _message, stack, ...more } = err;
  return { lines: stack.split('\n'), more: Object.keys(more).length === 0 ? {} : { err: more } };
}

/** The local time of day, to the millisecond. */
function clockTime(time: unknown): string {
  const at = new Date(String(time));
  if (Number.isNaN(at.getTime())) return printable(String(time));
  const two = (part: number) => String(part).padStart(2, '0');
  const seconds = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
  return `${seconds}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}
