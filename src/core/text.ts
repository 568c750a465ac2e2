import { styleText } from 'node:util';

const longest = 60;

/**
 * What a terminal obeys, or what changes how the text around it is read: control characters of both sets (C0 and C1),
 * marks that turn the direction of text, separators of lines and paragraphs, what takes no room at all, and halves of
 * characters. What chooses between two pictures of one character stays.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]/gv;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Text from outside on one line of a terminal: what is not to reach one is written as JSON would escape it, so that JSON
 * stays the same JSON. All that Portico writes to a terminal goes through this or `printableLines`.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** The same for a text of several lines, whose line ends and tabs stay, and what matches `kept`. */
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

/** Text from outside for use in a message: in quotes, on one line, without control characters, cut when long. */
export function quote(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return printable(JSON.stringify(cut));
}

/** A text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w.,:+/@%=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Any value of a configuration module for use in a message; objects by their kind alone. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (value === null || ['number', 'boolean', 'bigint', 'undefined'].includes(typeof value))
    return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A value that may be a secret, for use in a message: as `describeValue`, but a text by its kind alone. */
export function describeKind(value: unknown): string {
  return typeof value === 'string' ? 'a text' : describeValue(value);
}

/** The message of a foreign error: its text on one line, without control characters, cut when long. */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 300);
}

/** Edits between two texts: an insertion, a removal, a replacement or a swap of neighbours counts one. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let least = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}

/** The candidate that is most likely meant by `text`, ignoring case; undefined when none is near. */
export function nearest(text: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const allowed = Math.max(1, Math.floor(candidate.length / 3));
    if (Math.abs(candidate.length - text.length) > allowed) continue;
    const edits = distance(text.toLowerCase(), candidate.toLowerCase());
    if (edits <= allowed && edits < fewest) {
      best = candidate;
      fewest = edits;
    }
  }
  return best;
}

/** `; did you mean "x"?` to put behind a message, or nothing. */
export function didYouMean(text: string, candidates: Iterable<string>): string {
  const best = nearest(text, candidates);
  return best === undefined ? '' : `; did you mean ${best}?`;
}

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
