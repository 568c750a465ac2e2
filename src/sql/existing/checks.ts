/** What a condition on one column says in the words of a declaration. */
export interface ReadCheck {
  readonly column: string;
  /** Bounds as they are written, the value included. */
  readonly min?: string;
  readonly max?: string;
  /** Bounds that exclude their value. */
  readonly above?: string;
  readonly below?: string;
  readonly values?: readonly string[];
  /** The most characters or bytes. */
  readonly length?: string;
}

const CAST =
  /::(?:"(?:[^"]|"")*"\.)?(?:"(?:[^"]|"")*"|character varying|double precision|timestamp(?:\(\d\))? with(?:out)? time zone|[a-z_][\w.]*)(?:\(\d+(?:,\d+)?\))?(?:\[\])*/;
const TOKEN = new RegExp(
  String.raw`${CAST.source}|ARRAY\[|"(?:[^"]|"")*"|\[[^\]]*\]|'(?:[^']|'')*'|` +
    String.raw`\d+(?:\.\d+)?(?:e[+-]?\d+)?|[A-Za-z_]\w*|<=|>=|<>|!=|\|\||\S`,
  'gi',
);

/** Reads a condition: bounds, a list of values or a maximum length, or several with AND; undefined for any other. */
export function readCheck(expression: string): readonly ReadCheck[] | undefined {
  const tokens = (expression.match(TOKEN) ?? []).filter((token) => !token.startsWith('::'));
  try {
    const reader = new CheckReader(tokens);
    return reader.whole();
  } catch (error) {
    if (error instanceof UnreadableError) return undefined;
    throw error;
  }
}

/** A condition says something else than a declaration can. */
class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

type Operand =
  | { readonly is: 'column' | 'length'; readonly name: string }
  | { readonly is: 'number' | 'text'; readonly value: string };

const LENGTHS = ['length', 'char_length', 'character_length', 'octet_length'];

class CheckReader {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  whole(): readonly ReadCheck[] {
    const found = this.#all();
    if (this.#at < this.#tokens.length) throw new UnreadableError();
    return found;
  }

  #peek(word: string): boolean {
    return this.#tokens[this.#at]?.toUpperCase() === word;
  }

  #take(word: string): boolean {
    if (!this.#peek(word)) return false;
    this.#at++;
    return true;
  }

  #require(word: string): void {
    if (!this.#take(word)) throw new UnreadableError();
  }

  #all(): readonly ReadCheck[] {
    const found = [...this.#one()];
    while (this.#take('AND')) found.push(...this.#one());
    return found;
  }

  #one(): readonly ReadCheck[] {
    const before = this.#at;
    if (this.#take('(')) {
      try {
        const found = this.#all();
        this.#require(')');
        return found;
      } catch (error) {
        // The parenthesis may be that of an operand.
        if (!(error instanceof UnreadableError)) throw error;
        this.#at = before;
      }
    }
    return [this.#comparison()];
  }

  #comparison(): ReadCheck {
    const left = this.#operand();
    if (this.#take('BETWEEN')) {
      const min = this.#operand();
      this.#require('AND');
      return { ...boundOf(left, '>=', min), ...boundOf(left, '<=', this.#operand()) };
    }
    if (this.#take('IN')) {
      this.#require('(');
      return { column: columnOf(left), values: this.#texts(')') };
    }
    if (this.#peek('=') && this.#tokens[this.#at + 1]?.toUpperCase() === 'ANY') {
      this.#at += 2;
      let depth = 0;
      while (this.#take('(')) depth++;
      this.#require('ARRAY[');
      const values = this.#texts(']');
      for (; depth > 0; depth--) this.#require(')');
      return { column: columnOf(left), values };
    }
    const sign = this.#tokens[this.#at++] ?? '';
    const right = this.#operand();
    if (sign === '=' && right.is === 'text') return { column: columnOf(left), values: [right.value] };
    const isTurned = left.is === 'number' || left.is === 'text';
    return isTurned ? boundOf(right, TURNED[sign] ?? '', left) : boundOf(left, sign, right);
  }

  #texts(end: string): readonly string[] {
    const values: string[] = [];
    do {
      const each = this.#operand();
      if (each.is !== 'text') throw new UnreadableError();
      values.push(each.value);
    } while (this.#take(','));
    this.#require(end);
    return values;
  }

  #operand(): Operand {
    if (this.#take('(')) {
      const inside = this.#operand();
      this.#require(')');
      return inside;
    }
    const token = this.#tokens[this.#at++] ?? '';
    if (token === '-') {
      const number = this.#operand();
      if (number.is !== 'number') throw new UnreadableError();
      return { is: 'number', value: `-${number.value}` };
    }
    if (/^\d/.test(token)) return { is: 'number', value: token };
    if (token.startsWith("'")) return { is: 'text', value: token.slice(1, -1).replaceAll("''", "'") };
    if (LENGTHS.includes(token.toLowerCase()) && this.#take('(')) {
      const inside = this.#operand();
      this.#require(')');
      return { is: 'length', name: columnOf(inside) };
    }
    const [first = ''] = token;
    if (first === '"') return { is: 'column', name: token.slice(1, -1).replaceAll('""', '"') };
    if (first === '[') return { is: 'column', name: token.slice(1, -1) };
    if (!/^[A-Za-z_]/.test(token) || this.#peek('(') || WORDS.includes(token.toUpperCase()))
      throw new UnreadableError();
    return { is: 'column', name: token };
  }
}

/** Words that do not name columns. */
const WORDS = ['NOT', 'NULL', 'CASE', 'EXISTS', 'CAST', 'SELECT', 'AND', 'OR', 'IS', 'TRUE', 'FALSE'];
const TURNED: Readonly<Record<string, string>> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' };

function columnOf(operand: Operand): string {
  if (operand.is !== 'column') throw new UnreadableError();
  return operand.name;
}

function boundOf(left: Operand, sign: string, right: Operand): ReadCheck {
  if (right.is !== 'number' && right.is !== 'text') throw new UnreadableError();
  if (left.is === 'length') {
    if (sign !== '<=' || right.is !== 'number') throw new UnreadableError();
    return { column: left.name, length: right.value };
  }
  // A declaration has no bound such as '0001-01-01'.
  if (!/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(right.value)) throw new UnreadableError();
  const column = columnOf(left);
  switch (sign) {
    case '>=':
      return { column, min: right.value };
    case '<=':
      return { column, max: right.value };
    case '>':
      return { column, above: right.value };
    case '<':
      return { column, below: right.value };
    default:
      throw new UnreadableError();
  }
}
