import { styleText } from 'node:util';
import { printableLines } from './quote.ts';

/** The styles that Portico writes. */
export type Style = 'bold' | 'dim' | 'cyan' | 'gray' | 'blue' | 'green' | 'yellow' | 'red' | 'bgRed';

/** Puts a style around a text, or leaves it plain. */
export type Paint = (style: Style, text: string) => string;

/** Leaves each text as it is. */
export const plainly: Paint = (_style, text) => text;

/**
 * Whether a stream gets colours: FORCE_COLOR decides, 0 and false for none; then NO_COLOR (no-color.org); otherwise only
 * a terminal does.
 */
export function isColoured(
  stream: { readonly isTTY?: boolean },
  env: NodeJS.ProcessEnv = process.env,
): boolean {
  const { FORCE_COLOR: force, NO_COLOR: none, TERM: terminal } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  if (none !== undefined && none !== '') return false;
  return stream.isTTY === true && terminal !== 'dumb';
}

/** What paints for a stream. */
export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Paint {
  if (!isColoured(stream, env)) return plainly;
  return (style, text) => styleText(style, text, { validateStream: false });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what styleText writes
const STYLES = /\x1b\[\d{1,3}m/;

/** A text for a terminal in which this program has painted; all else that a terminal obeys is escaped. */
export function paintedLines(text: string): string {
  return printableLines(text, STYLES);
}
