/** A book in a body of a request. */
export interface NewBook {
  readonly title: string;
  readonly pages: number;
  /** With two digits behind the point. */
  readonly price: string;
  readonly published: string | null;
  readonly author_id: number;
  readonly publisher_id: number;
}

/** An edition in a line of an import: a book with a number that no other has. */
export interface NewEdition extends NewBook {
  readonly isbn: string;
}

/** Lines that an import stores in one transaction. */
export const IMPORT_BATCH = 2_000;
/** Rows that an export reads at once. */
export const EXPORT_PAGE = 1_000;

export const NOT_FOUND = { status: 404, code: 'NOT_FOUND' } as const;
export const INVALID = { status: 400, code: 'INVALID_ROW' } as const;
export const MISSING = { status: 409, code: 'REFERENCE_MISSING' } as const;

const PRICE = /^(0|[1-9]\d{0,7})\.\d\d$/;
const DATE = /^\d{4}-\d\d-\d\d$/;

/** The book in a parsed body, checked as Portico checks it; undefined if it is not valid. */
export function readBook(body: unknown): NewBook | undefined {
  const { title, pages, price, published = null, author_id, publisher_id } = Object(body);
  const isValid =
    typeof title === 'string' &&
    [...title].length <= 200 &&
    Number.isSafeInteger(pages) &&
    pages >= 1 &&
    typeof price === 'string' &&
    PRICE.test(price) &&
    (published === null || (typeof published === 'string' && isDate(published))) &&
    Number.isSafeInteger(author_id) &&
    Number.isSafeInteger(publisher_id);
  return isValid ? { title, pages, price, published, author_id, publisher_id } : undefined;
}

/** The edition in a line, checked like a book; undefined if it is not valid. */
export function readEdition(line: string): NewEdition | undefined {
  const body = parsed(line);
  const { isbn } = Object(body);
  const book = readBook(body);
  return book !== undefined && typeof isbn === 'string' && isbn.length <= 13 ? { isbn, ...book } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDate(text: string): boolean {
  const date = DATE.test(text) ? new Date(text) : undefined;
  return date !== undefined && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** The parameters of a page: the books of a publisher after an id. */
export function readPage(query: Readonly<Record<string, unknown>>) {
  const publisher = Number(query.publisher_id);
  const limit = Number(query.limit ?? 100);
  const after = Number(query.after ?? 0);
  const isValid = [publisher, limit, after].every(Number.isSafeInteger) && limit >= 1 && limit <= 1_000;
  return isValid ? { publisher, limit, after } : undefined;
}

/** How many authors a list with their books has, and how many of the books of each. */
export const AUTHORS_WITH_BOOKS = { authors: 100, books: 10 } as const;

/** An author's book as the list of authors shows it. */
export interface BookOfAuthor {
  readonly id: number;
  readonly title: string;
  readonly price: string;
}

/** Authors with their books, of which `found` has those of all authors in the order of their ids. */
export function withBooks<T extends { readonly id: number }>(
  authors: readonly T[],
  found: readonly (BookOfAuthor & { readonly author_id: number })[],
): readonly (T & { readonly books: readonly BookOfAuthor[] })[] {
  const books = new Map<number, BookOfAuthor[]>();
  for (const { author_id, ...book } of found) {
    const own = books.get(author_id);
    if (own === undefined) books.set(author_id, [book]);
    else if (own.length < AUTHORS_WITH_BOOKS.books) own.push(book);
  }
  return authors.map((author) => ({ ...author, books: books.get(author.id) ?? [] }));
}

/** The Link header of a page. */
export function linkOf(
  { publisher, limit }: { readonly publisher: number; readonly limit: number },
  last: number,
) {
  return `</books?publisher_id=${publisher}&limit=${limit}&after=${last}>; rel="next"`;
}
