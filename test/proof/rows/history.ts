import assert from 'node:assert/strict';
import { checkEvents, type RowContent } from './content.ts';

/** What one request changes, all or nothing: the text of each row by its token, undefined if it is removed. */
export interface RowGroup {
  readonly changes: ReadonlyMap<string, string | undefined>;
  /** The x-request-id of the reply that acknowledged it. */
  acknowledgedBy?: string;
}

type Rows = ReadonlyMap<string, string>;

interface CheckOptions {
  /** Whether a client knows of this change. */
  isKnown?(group: RowGroup): boolean;
  /** How many changes of a chain may be stored besides those that are known. */
  readonly ahead?: number;
}

const textOf = (rows: Rows) =>
  [...rows]
    .map(([token, text]) => `${token}: ${text}`)
    .toSorted()
    .join(', ') || 'none';

/** What a row of authors or of loans is called and holds, in the words of a writer. */
export const authorText = (n: string) => `author ${n}`;
export const loanText = (author: string, n: string) => `loan of ${author} ${n}`;

/**
 * The changes that clients sent, in chains: each is sent after the one before it was acknowledged, and no other
 * chain touches its rows. A row has the token `<chain>.<number>`.
 */
export class RowHistory {
  readonly #chains = new Map<string, RowGroup[]>();
  /** Tokens of authors by the ids that were given to them. */
  readonly #tokens = new Map<number, string>();
  #acknowledged = 0;

  /** How many changes were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  get groups(): readonly RowGroup[] {
    return [...this.#chains.values()].flat();
  }

  sends(chain: string, changes: RowGroup['changes']): RowGroup {
    const group: RowGroup = { changes };
    this.#chains.set(chain, [...(this.#chains.get(chain) ?? []), group]);
    return group;
  }

  acknowledge(group: RowGroup, by: string): void {
    group.acknowledgedBy = by;
    this.#acknowledged++;
  }

  /** An author has an id that no other one ever had. */
  names(id: number, token: string): void {
    assert.equal(this.#tokens.get(id) ?? token, token, `id ${id} was given a second time`);
    this.#tokens.set(id, token);
  }

  /** Fails unless the store holds what is known, perhaps what was under way, and nothing else. */
  check(content: RowContent = NOTHING, { isKnown = isAcknowledged, ahead = 1 }: CheckOptions = {}): void {
    for (const [chain, stored] of chainsOf(content)) {
      assert.ok(this.#chains.has(chain), `nobody sent ${textOf(stored)}`);
    }
    const found = chainsOf(content);
    for (const [chain, groups] of this.#chains) {
      const known = groups.findLastIndex((group) => isKnown(group)) + 1;
      const possible = statesOf(groups)
        .slice(known, known + 1 + ahead)
        .map(textOf);
      const stored = textOf(found.get(chain) ?? new Map());
      assert.ok(
        possible.includes(stored),
        `lost: of ${chain} is stored ${stored} and should be ${possible.join(' or ')}`,
      );
    }
    for (const { id = 0, name = '' } of content.authors) {
      assert.equal(this.#tokens.get(id) ?? name, name, `author ${id}`);
    }
    checkEvents(content);
  }

  /** Checks the store; what got no reply is from now on what it has become. */
  settle(content: RowContent = NOTHING): void {
    this.check(content);
    const found = chainsOf(content);
    for (const chain of this.#chains.keys()) {
      this.#chains.set(chain, [{ changes: found.get(chain) ?? new Map(), acknowledgedBy: 'the store' }]);
    }
    for (const { id = 0, name = '' } of content.authors) this.names(id, name);
  }
}

const NOTHING: RowContent = { authors: [], loans: [], events: [] };

const isAcknowledged = ({ acknowledgedBy }: RowGroup) => acknowledgedBy !== undefined;

/** The rows of a chain before its first change and after each. */
function statesOf(groups: readonly RowGroup[]): readonly Rows[] {
  const states: Rows[] = [new Map()];
  for (const { changes } of groups) {
    const next = new Map(states.at(-1));
    for (const [token, text] of changes) {
      if (text === undefined) next.delete(token);
      else next.set(token, text);
    }
    states.push(next);
  }
  return states;
}

/** The stored rows of each chain. Fails if a name is there twice or a loan has no author. */
function chainsOf({ authors, loans }: RowContent): ReadonlyMap<string, Rows> {
  const names = new Map(authors.map(({ id, name = '' }) => [id, name]));
  assert.equal(new Set(names.values()).size, authors.length, 'names are unique');
  const chains = new Map<string, Map<string, string>>();
  const add = (token: string, text: string) => {
    const chain = token.slice(0, token.lastIndexOf('.'));
    const rows = chains.get(chain) ?? new Map<string, string>();
    assert.ok(!rows.has(token), `${token} is stored twice`);
    chains.set(chain, rows.set(token, text));
  };
  for (const { name = '', n } of authors) add(name, authorText(n));
  for (const { author_id, reader = '', n } of loans) {
    const author = names.get(author_id);
    assert.ok(author !== undefined, `the loan ${reader} has no author ${author_id}`);
    add(reader, loanText(author, n));
  }
  return chains;
}
