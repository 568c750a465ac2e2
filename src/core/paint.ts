import { styleText } from 'node:util';

/** The styles that Portico writes. */
export type Style = 'bold' | 'dim' | 'cyan';

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
