import { once } from 'node:events';

/** Writes to standard output no faster than it is read. */
export async function print(text: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

/** Ends the process when standard output takes nothing more. That its reader went away (`| head`) is no failure. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    note(`portico: standard output takes nothing more: ${error.message}`);
    process.exit(1);
  });
}

/** Tells a person something beside the output. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** `1 delivery`, `5,000 deliveries`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

/** Text from outside on one line, without characters that a terminal would obey. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}
