import { once } from 'node:events';
import { paintedLines } from '../../core/paint.ts';
import { printableLines } from '../../core/quote.ts';

/** Writes lines for people, or JSON, to standard output; resolves when more can be written. */
export function print(text: string): Promise<void> {
  return write(printableLines(text));
}

/** Writes lines for people in which something is painted. */
export function printPainted(text: string): Promise<void> {
  return write(paintedLines(text));
}

/** Writes a value as one line of JSON. */
export function printJson(value: unknown): Promise<void> {
  return print(`${JSON.stringify(value)}\n`);
}

/** Writes data as they are; a terminal gets them escaped. */
export function printData(data: string | Uint8Array): Promise<void> {
  if (!process.stdout.isTTY) return write(data);
  return write(printableLines(typeof data === 'string' ? data : Buffer.from(data).toString()));
}

async function write(data: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(data)) await once(process.stdout, 'drain');
}

/** From now on ends the process when standard output fails; with code 0 when its reader has closed it (`| head`). */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    note(`portico: standard output failed: ${error.message}`);
    process.exit(1);
  });
}

/** Writes a line for people to standard error. */
export function note(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/** `1 delivery`, `5,000 deliveries`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}
