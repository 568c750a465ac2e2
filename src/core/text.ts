import { styleText } from 'node:util';

const longest = 60;

/**
 * Characters that control a terminal or change how the text around them is read: control characters (C0 and
 * C1), bidirectional marks, line and paragraph separators, invisible characters and lone surrogates.
 * Variation selectors are printable.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]/gv;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Makes untrusted text safe for one line of a terminal. Unprintable characters are written as JSON escapes,
 * so that JSON stays equivalent. Everything that Portico writes to a terminal goes through this or
 * `printableLines`.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** Like `printable`, but keeps line ends, tabs and everything that matches `kept`. */
export function printableLines(text: string, kept?: RegExp): string {
  const parts = kept === undefined ? /\r?\n|\t/g : new RegExp(`\\r?\\n|\\t|${kept.source}`, 'g');
  let shown = '';
  let at = 0;
  for (const { 0: part, index } of text.matchAll(parts)) {
    shown += printable(text.slice(at, index)) + part;
    at = index + part.length;
  }
  return shown + printable(text.slice(at));
}

function escaped(character: string): string {
  return SHORT[character] ?? character.replace(/[\s\S]/g, unitEscape);
}

function unitEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Quotes untrusted text for a message: on one line, without control characters, truncated if long. */
export function quote(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return printable(JSON.stringify(cut));
}

/** Quotes a text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w.,:+/@%=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Describes a value of a configuration module for a message; objects only by their type. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (value === null || ['number', 'boolean', 'bigint', 'undefined'].includes(typeof value))
    return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Describes a value that may be a secret: like `describeValue`, but a text only by its type. */
export function describeKind(value: unknown): string {
  return typeof value === 'string' ? 'a text' : describeValue(value);
}

/** The message of a third-party error: on one line, without control characters, truncated if long. */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 300);
}

/**
 * The edit distance: insertions, deletions, substitutions and swaps of neighbours count one each. Above `most` it
 * stops and returns a larger number than that.
 */
function distance(a: string, b: string, most: number): number {
  let beforeLast = new Uint16Array(b.length + 1);
  let last = new Uint16Array(b.length + 1);
  let current = new Uint16Array(b.length + 1);
  for (let column = 0; column <= b.length; column++) last[column] = column;
  for (let row = 1; row <= a.length; row++) {
    const unit = a.charCodeAt(row - 1);
    const before = a.charCodeAt(row - 2);
    // Elsewhere more letters than `most` were inserted or deleted.
    const first = Math.max(1, row - most);
    const end = Math.min(b.length, row + most);
    current[first - 1] = first === 1 ? row : most + 1;
    let fewest = current[first - 1] ?? 0;
    for (let column = first; column <= end; column++) {
      const other = b.charCodeAt(column - 1);
      const above = column === row + most ? most + 1 : (last[column] ?? 0) + 1;
      let least = Math.min(above, (current[column - 1] ?? 0) + 1);
      least = Math.min(least, (last[column - 1] ?? 0) + (unit === other ? 0 : 1));
      const swapped = row > 1 && column > 1 && unit === b.charCodeAt(column - 2) && before === other;
      if (swapped) least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      current[column] = least;
      if (least < fewest) fewest = least;
    }
    if (fewest > most) return fewest;
    [beforeLast, last, current] = [last, current, beforeLast];
  }
  return last[b.length] ?? 0;
}

/** The candidate closest to `text`, ignoring case; undefined if none is close. */
export function nearest(text: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const most = Math.min(Math.max(1, Math.floor(candidate.length / 3)), fewest - 1);
    if (Math.abs(candidate.length - text.length) > most) continue;
    const edits = distance(text.toLowerCase(), candidate.toLowerCase(), most);
    if (edits <= most) {
      best = candidate;
      fewest = edits;
    }
  }
  return best;
}

/** `; did you mean x?` to append to a message, or an empty text. */
export function didYouMean(text: string, candidates: Iterable<string>): string {
  const best = nearest(text, candidates);
  return best === undefined ? '' : `; did you mean ${best}?`;
}

/** The terminal styles that Portico uses. */
export type Style = 'bold' | 'dim' | 'cyan' | 'gray' | 'blue' | 'green' | 'yellow' | 'red' | 'bgRed';

/** Applies a style to a text, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

/** Returns each text unchanged. */
export const plainly: Paint = (_style, text) => text;

/**
 * Whether output to a stream is coloured: FORCE_COLOR decides if it is set (0 and false mean no), then
 * NO_COLOR (no-color.org); otherwise only a terminal is.
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

/** The paint function for a stream. */
export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Paint {
  if (!isColoured(stream, env)) return plainly;
  return (style, text) => styleText(style, text, { validateStream: false });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what styleText writes
const STYLES = /\x1b\[\d{1,3}m/;

/** Escapes a text for a terminal, but keeps the styles that `Paint` applied. */
export function paintedLines(text: string): string {
  return printableLines(text, STYLES);
}

/** The form in which filters and orders compare texts: A to Z in lower case, without a locale. */
export function folded(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
