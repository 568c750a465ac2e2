import type { DestinationStream } from 'pino';
import { isColoured } from '../../core/paint.ts';

/** A log on a terminal: one readable line per entry. */
export interface TerminalLog extends DestinationStream {
  /** From now on shows entries at info too. */
  begin(): void;
}

/** Opens a log on the terminal of standard output. Until `begin` it leaves out what is at info: a banner says it better. */
export async function terminalLog(): Promise<TerminalLog> {
  // Loaded for a terminal only.
  const { default: pretty } = await import('pino-pretty');
  const lines = pretty({
    colorize: isColoured(process.stdout),
    sync: true,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'logger',
    messageFormat: '{if logger}{logger}: {end}{msg}',
  });
  let begun = false;
  return {
    write(line) {
      if (begun || !line.startsWith('{"level":"info"')) lines.write(line);
    },
    begin() {
      begun = true;
    },
  };
}
