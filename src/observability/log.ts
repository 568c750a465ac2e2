import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import type { SecretTexts } from '../config/known-secrets.ts';
import { lineCleaner } from './clean-line.ts';

export interface LogOptions {
  /** A pino level, or `silent`. */
  readonly level: string;
  /** Where entries go, one JSON line each; standard output when absent, made readable on a terminal. */
  readonly stream?: DestinationStream | undefined;
  /** What stands in no line; credentials in headers never do. */
  readonly secrets?: SecretTexts | undefined;
}

/** Levels by their names: a log is read by people and by programs that know no pino. */
const formatters = { level: (label: string) => ({ level: label }) };

/** Opens the process's log. */
export async function openLog({ level, stream, secrets = { texts: [] } }: LogOptions): Promise<Logger> {
  const hooks = { streamWrite: lineCleaner(secrets) };
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime, hooks, formatters };
  if (stream !== undefined) return pino(options, stream);
  if (!process.stdout.isTTY) return pino(options, pino.destination({ dest: 1, sync: true }));
  // Loaded only where somebody looks.
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ colorize: true, sync: true, translateTime: 'SYS:HH:MM:ss.l' }));
}
