import assert from 'node:assert/strict';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Random } from '../../support/random.ts';
import type { Reply } from '../kill/client.ts';
import type { StoredRow } from './content.ts';
import { authorText, loanText, type RowHistory } from './history.ts';

/** Sends a request to the REST door; resolves to undefined if nothing tells whether it was done. */
export type Ask = (
  method: string,
  path: string,
  body?: string,
  headers?: OutgoingHttpHeaders,
) => Promise<Reply | undefined>;

interface Author {
  readonly id: number;
  readonly name: string;
}

interface Loan {
  readonly author: Author;
  readonly reader: string;
}

/** Numbers that a double cannot hold. */
const LARGE = 2n ** 62n;

/** Writes rows of relations in all ways, one request at a time. After one without a reply it leaves its rows alone. */
export class RowWriter {
  readonly #history: RowHistory;
  readonly #random: Random;
  readonly #prefix: string;
  readonly #ask: Ask;
  #authors: Author[] = [];
  #loans: Loan[] = [];
  #chains = 0;
  #count = 0;

  /** No other writer has the prefix. */
  constructor(history: RowHistory, random: Random, prefix: string, ask: Ask) {
    this.#history = history;
    this.#random = random;
    this.#prefix = prefix;
    this.#ask = ask;
  }

  /** Sends a write of any kind; resolves to whether it was acknowledged. */
  async write(): Promise<boolean> {
    const author = this.#pick(this.#authors);
    const loan = this.#pick(this.#loans);
    const kind = this.#random.below(10);
    if (author === undefined || kind === 0) return this.#createAuthor();
    if (kind === 1) return this.#nest();
    if (kind === 2) return this.#lend(author);
    if (kind === 3) return this.#changeAuthor(author);
    if (kind === 4 || loan === undefined) return this.#put(author);
    if (kind === 5) return this.#changeLoan(loan);
    if (kind === 6) return this.#batch(loan);
    if (kind === 7) return this.#return(loan);
    if (kind === 8) return this.#upsert(author);
    return this.#remove(author);
  }

  /** Reads a row that was acknowledged. */
  async read(): Promise<void> {
    const loan = this.#pick(this.#loans);
    if (loan === undefined) return;
    const reply = await this.#ask('GET', `/loans/${loan.author.id},${loan.reader}`);
    if (reply === undefined) return;
    assert.equal(reply.status, 200, reply.text);
    assert.equal((JSON.parse(reply.text) as StoredRow).reader, loan.reader);
  }

  async #createAuthor(): Promise<boolean> {
    const [name, n] = [this.#token(), this.#n()];
    const reply = await this.#send('POST', '/authors', { name, n }, [[name, authorText(n)]]);
    return reply !== undefined && this.#created(reply, name);
  }

  /** An author with two loans. */
  async #nest(): Promise<boolean> {
    const [name, n] = [this.#token(), this.#n()];
    const loans = [0, 1].map(() => ({ reader: this.#token(), n: this.#n() }));
    const changes = loans.map((loan) => [loan.reader, loanText(name, loan.n)] as const);
    const body = { name, n, loans };
    const reply = await this.#send('POST', '/authors', body, [[name, authorText(n)], ...changes]);
    if (reply === undefined) return false;
    this.#created(reply, name);
    const author = this.#authors.at(-1) as Author;
    this.#loans.push(...loans.map(({ reader }) => ({ author, reader })));
    return true;
  }

  /** An array of loans. */
  async #lend(author: Author): Promise<boolean> {
    const rows = [0, 1, 2].map(() => ({ author_id: author.id, reader: this.#token(), n: this.#n() }));
    const changes = rows.map(({ reader, n }) => [reader, loanText(author.name, n)] as const);
    const reply = await this.#send('POST', '/loans', rows, changes);
    if (reply === undefined) return false;
    this.#loans.push(...rows.map(({ reader }) => ({ author, reader })));
    return true;
  }

  async #put(author: Author): Promise<boolean> {
    const [reader, n] = [this.#token(), this.#n()];
    const path = `/loans/${author.id},${reader}`;
    const reply = await this.#send('PUT', path, { n }, [[reader, loanText(author.name, n)]]);
    if (reply === undefined) return false;
    this.#loans.push({ author, reader });
    return true;
  }

  async #changeAuthor({ id, name }: Author): Promise<boolean> {
    const n = this.#n();
    return (await this.#send('PATCH', `/authors/${id}`, { n }, [[name, authorText(n)]])) !== undefined;
  }

  async #changeLoan({ author, reader }: Loan): Promise<boolean> {
    const n = this.#n();
    const path = `/loans/${author.id},${reader}`;
    return (await this.#send('PATCH', path, { n }, [[reader, loanText(author.name, n)]])) !== undefined;
  }

  async #upsert({ name }: Author): Promise<boolean> {
    const n = this.#n();
    return (await this.#send('POST', '/authors?on=name', { name, n }, [[name, authorText(n)]])) !== undefined;
  }

  /** Three writes to both relations. */
  async #batch(loan: Loan): Promise<boolean> {
    const [name, reader] = [this.#token(), this.#token()];
    const [first, second, third] = [this.#n(), this.#n(), this.#n()];
    const writes = [
      { method: 'POST', path: '/authors', body: { name, n: first } },
      {
        method: 'POST',
        path: '/loans',
        body: { author_id: { $result: 0, pointer: '/id' }, reader, n: second },
      },
      { method: 'PATCH', path: `/loans/${loan.author.id},${loan.reader}`, body: { n: third } },
    ];
    const reply = await this.#send('POST', '/_batch', { writes }, [
      [name, authorText(first)],
      [reader, loanText(name, second)],
      [loan.reader, loanText(loan.author.name, third)],
    ]);
    if (reply === undefined) return false;
    const { results } = JSON.parse(reply.text) as { results: readonly { body: StoredRow }[] };
    this.#keep(results[0]?.body, name);
    this.#loans.push({ author: this.#authors.at(-1) as Author, reader });
    return true;
  }

  async #return(loan: Loan): Promise<boolean> {
    const path = this.#random.chance(0.5)
      ? `/loans/${loan.author.id},${loan.reader}`
      : `/loans?reader=${loan.reader}&author_id=${loan.author.id}`;
    const headers = path.includes('?') ? { prefer: 'max-affected=1' } : {};
    const reply = await this.#send('DELETE', path, undefined, [[loan.reader, undefined]], headers);
    if (reply === undefined) return false;
    this.#loans = this.#loans.filter((each) => each !== loan);
    return true;
  }

  /** An author with all of its loans. */
  async #remove(author: Author): Promise<boolean> {
    const gone = this.#loans.filter((loan) => loan.author === author);
    const reply = await this.#send('DELETE', `/authors/${author.id}`, undefined, [
      [author.name, undefined],
      ...gone.map(({ reader }) => [reader, undefined] as const),
    ]);
    if (reply === undefined) return false;
    this.#authors = this.#authors.filter((each) => each !== author);
    this.#loans = this.#loans.filter((loan) => loan.author !== author);
    return true;
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    changes: readonly (readonly [string, string | undefined])[],
    headers: OutgoingHttpHeaders = {},
  ): Promise<Reply | undefined> {
    const group = this.#history.sends(this.#chain, new Map(changes));
    const reply = await this.#ask(
      method,
      path,
      body === undefined ? undefined : JSON.stringify(body),
      headers,
    );
    if (reply === undefined) {
      this.#chains++;
      this.#authors = [];
      this.#loans = [];
      return undefined;
    }
    assert.ok([200, 201, 204].includes(reply.status), `${method} ${path}: ${reply.status} ${reply.text}`);
    this.#history.acknowledge(group, String(reply.headers['x-request-id']));
    return reply;
  }

  #created({ text }: Reply, name: string): true {
    this.#keep(JSON.parse(text) as StoredRow, name);
    return true;
  }

  #keep(row: StoredRow | undefined, name: string): void {
    assert.equal(row?.name, name);
    const id = row.id ?? 0;
    this.#history.names(id, name);
    this.#authors.push({ id, name });
  }

  get #chain(): string {
    return `${this.#prefix}-${this.#chains}`;
  }

  #token(): string {
    return `${this.#chain}.${++this.#count}`;
  }

  #n(): string {
    return String(LARGE + BigInt(++this.#count));
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[this.#random.below(list.length)];
  }
}
