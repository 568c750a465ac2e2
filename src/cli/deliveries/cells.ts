import { printable } from '../../core/text.ts';
import type { EventNames } from '../../inbox/delivery.ts';

// Characters that terminals draw two columns wide (Unicode Standard Annex 11, roughly).
const WIDE = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{Emoji_Presentation}\uff01-\uff60]/u;
const NONE = /\p{M}/u;

/** Width of a character in terminal columns. */
function columnsOf(character: string): number {
  if (NONE.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Width of a text in terminal columns. */
export function widthOf(text: string): number {
  // Most texts are ASCII.
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** Untrusted text as a table cell, cut to a width in columns. */
export function cell(text: string, width = Number.POSITIVE_INFINITY): string {
  const shown = printable(text);
  if (widthOf(shown) <= width) return shown;
  let cut = '';
  let taken = 1;
  for (const character of shown) {
    taken += columnsOf(character);
    if (taken > width) break;
    cut += character;
  }
  return `${cut}…`;
}

/**
 * The event of a delivery by its name in Portico, and the sender's name if that differs; undefined without an
 * event.
 */
export function eventText({ event, senderEvent }: EventNames): string | undefined {
  if (event === null) return undefined;
  return senderEvent == null ? event : `${event} (${senderEvent})`;
}

/** Pads a text with spaces to a width in columns; `right` aligns it to the right. */
export function pad(text: string, width: number, right = false): string {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)));
  return right ? spaces + text : text + spaces;
}
