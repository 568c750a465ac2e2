import { randomUUID } from 'node:crypto';
import type { ResultBudget } from './result-budget.ts';

/** Stands for a list while the text around it is made. No client knows it, so no data can hold it. */
const MARK = `list ${randomUUID()}`;

/** A long list of a result, kept as JSON: its items are made in turns and need far less memory as text. */
export class JsonList {
  readonly #budget: ResultBudget;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(budget: ResultBudget) {
    this.#budget = budget;
  }

  /** Adds items that hold no long lists. Throws when the result is past its limits. */
  add(items: readonly unknown[]): void {
    if (items.length > 0) this.#append([Buffer.from(JSON.stringify(items))]);
  }

  /** The same where some may hold long lists, which takes ten times as long. */
  addWithLists(items: readonly unknown[]): void {
    if (items.length === 0) return;
    const { text, lists } = textOf(items);
    // The lists within have counted theirs.
    this.#append(piecesOf(text, lists), sum(lists));
  }

  /** Takes the JSON of an array into its own: the bracket before it becomes a comma, the one behind it goes. */
  #append(pieces: readonly Buffer[], counted = 0): void {
    const before = this.#bytes;
    for (const [index, piece] of pieces.entries()) {
      if (index === 0 && this.#pieces.length > 0) piece.write(',');
      const part = index === pieces.length - 1 ? piece.subarray(0, -1) : piece;
      this.#pieces.push(part);
      this.#bytes += part.byteLength;
    }
    this.#budget.hold(this.#bytes - before - counted);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get pieces(): readonly Buffer[] {
    return [...(this.#pieces.length === 0 ? [OPEN] : this.#pieces), CLOSE];
  }
}

const OPEN = Buffer.from('[');
const CLOSE = Buffer.from(']');

/** The JSON of a value that may hold long lists. */
export function jsonWithLists(value: unknown): Buffer {
  const { text, lists } = textOf(value);
  return Buffer.concat(piecesOf(text, lists));
}

function sum(lists: readonly JsonList[]): number {
  return lists.reduce((bytes, list) => bytes + list.bytes, 0);
}

function textOf(value: unknown): { readonly text: string; readonly lists: readonly JsonList[] } {
  const lists: JsonList[] = [];
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (!(part instanceof JsonList)) return part;
    lists.push(part);
    return MARK;
  });
  return { text, lists };
}

/** The first and the last piece are not shared with a list. */
function piecesOf(text: string, lists: readonly JsonList[]): readonly Buffer[] {
  if (lists.length === 0) return [Buffer.from(text)];
  return text
    .split(`"${MARK}"`)
    .flatMap((part, index) => [Buffer.from(part), ...(lists[index]?.pieces ?? [])]);
}
