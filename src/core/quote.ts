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
