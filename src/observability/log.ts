import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';

export interface LogOptions {
  /** A pino level, or `silent`. */
  readonly level: string;
  /** Where entries go, one JSON line each; standard output when absent, made readable on a terminal. */
  readonly stream?: DestinationStream | undefined;
}

/** What may never stand in a log line, wherever a logged request or header object carries it. */
const REDACTED = ['authorization', 'cookie', 'x-webhook-token'].flatMap((name) => [
  `headers["${name}"]`,
  `*.headers["${name}"]`,
]);

/** Levels by their names: a log is read by people and by programs that know no pino. */
const formatters = { level: (label: string) => ({ level: label }) };

/** Opens the process's log. */
export async function openLog({ level, stream }: LogOptions): Promise<Logger> {
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime, redact: REDACTED, formatters };
  if (stream !== undefined) return pino(options, stream);
  if (!process.stdout.isTTY) return pino(options, pino.destination({ dest: 1, sync: true }));
  // Loaded only where somebody looks.
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ colorize: true, sync: true, translateTime: 'SYS:HH:MM:ss.l' }));
}
