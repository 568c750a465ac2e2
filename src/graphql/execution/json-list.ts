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

  /** Adds items. Throws when the result is past its limits. */
  add(items: readonly unknown[]): void {
    if (items.length === 0) return;
    const before = this.#bytes;
    const { text, lists } = textOf(items);
    const inside = `${this.#pieces.length === 0 ? '' : ','}${text.slice(1, -1)}`;
    for (const piece of piecesOf(inside, lists)) {
      this.#pieces.push(piece);
      this.#bytes += piece.byteLength;
    }
    // The lists within have counted theirs.
    this.#budget.hold(this.#bytes - before - sum(lists));
  }

  get bytes(): number {
    return this.#bytes;
  }

  get pieces(): readonly Buffer[] {
    return [OPEN, ...this.#pieces, CLOSE];
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

function piecesOf(text: string, lists: readonly JsonList[]): readonly Buffer[] {
  if (lists.length === 0) return [Buffer.from(text)];
  return text
    .split(`"${MARK}"`)
    .flatMap((part, index) => [Buffer.from(part), ...(lists[index]?.pieces ?? [])]);
}
