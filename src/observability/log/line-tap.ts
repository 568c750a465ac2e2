import type { DestinationStream } from 'pino';
import type { SecretTexts } from '../../core/redaction.ts';

/** Sees the lines of a log as they are written, and can write one like them. */
export class LineTap {
  readonly #secrets: SecretTexts;
  #destination: DestinationStream | undefined;
  #lastLine = '';

  constructor(secrets: SecretTexts) {
    this.#secrets = secrets;
  }

  /** The last line, without what is secret, as it was written. */
  get lastLine(): string {
    return this.#lastLine;
  }

  /** Another list once more is secret: what was made before may not be repeated then. */
  get secretTexts(): readonly string[] {
    return this.#secrets.texts;
  }

  /** Called by the log: where it writes to. */
  connect(destination: DestinationStream): void {
    this.#destination = destination;
  }

  /** Called by the log for each line. */
  see(line: string): string {
    this.#lastLine = line;
    return line;
  }

  /** Writes a line that is clean. */
  write(line: string): void {
    this.#destination?.write(line);
  }
}
