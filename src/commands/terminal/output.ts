import { once } from 'node:events';

/** Writes to standard output; resolves when more can be written. */
export async function print(text: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
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
  process.stderr.write(`${text}\n`);
}

/** `1 delivery`, `5,000 deliveries`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

/** Untrusted text on one line, its control characters replaced. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}
