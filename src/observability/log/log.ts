import { type DestinationStream, type Logger, pino } from 'pino';
import { describeError } from '../../core/describe-error.ts';
import type { SecretTexts } from '../../core/redaction.ts';
import { lineCleaner } from './clean-line.ts';
import { type GatheringStream, gatherWrites } from './gather-writes.ts';
import type { LogTail } from './log-tail.ts';
import { isoTimestamp } from './log-time.ts';
import { terminalLog } from './terminal-log.ts';

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
