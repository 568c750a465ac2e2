import { createInterface } from 'node:readline/promises';
import { printable } from '../../core/quote.ts';

/** Asks on the terminal; only y or yes confirms. True without asking when standard input is no terminal. */
export async function confirmed(question: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY) return true;
  using terminal = createInterface({ input: process.stdin, output: process.stderr });
  const { promise, resolve } = Promise.withResolvers<undefined>();
  // Ctrl+C and Ctrl+D.
  terminal.on('SIGINT', () => resolve(undefined)).on('close', () => resolve(undefined));
  const asked = terminal.question(`${printable(question)} [y/N] `, { signal }).catch(() => undefined);
  const answer = await Promise.race([asked, promise]);
  return /^\s*y(?:es)?\s*$/i.test(answer ?? '');
}
