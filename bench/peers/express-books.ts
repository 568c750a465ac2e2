import { createInterface } from 'node:readline';
import express from 'express';
import {
  AUTHORS_WITH_BOOKS,
  type BookOfAuthor,
  EXPORT_PAGE,
  IMPORT_BATCH,
  INVALID,
  linkOf,
  MISSING,
  type NewEdition,
  NOT_FOUND,
  readBook,
  readEdition,
  readPage,
  withBooks,
} from './books.ts';
import { address } from './listen.ts';
import { openDatabase } from './sqlite.ts';

// What somebody writes by hand for one table with two references: prepared statements, one commit a write.

interface Stored {
  readonly id: number;
  readonly cents: number;
}

interface OfAuthor extends Omit<BookOfAuthor, 'price'> {
  readonly author_id: number;
  readonly cents: number;
}

const db = await openDatabase('books.db');
db.exec('PRAGMA foreign_keys=ON');
db.exec(`
  CREATE TABLE IF NOT EXISTS authors (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS publishers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS books (
    id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, pages INTEGER NOT NULL, cents INTEGER NOT NULL,
    published TEXT, author_id INTEGER NOT NULL REFERENCES authors, publisher_id INTEGER NOT NULL REFERENCES publishers
  ) STRICT;
  CREATE INDEX IF NOT EXISTS books_author ON books (author_id);
  CREATE INDEX IF NOT EXISTS books_publisher ON books (publisher_id);
  CREATE TABLE IF NOT EXISTS editions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, isbn TEXT NOT NULL UNIQUE, title TEXT NOT NULL, pages INTEGER NOT NULL,
    cents INTEGER NOT NULL, published TEXT, author_id INTEGER NOT NULL REFERENCES authors,
    publisher_id INTEGER NOT NULL REFERENCES publishers
  ) STRICT;
  CREATE INDEX IF NOT EXISTS editions_author ON editions (author_id);
  CREATE INDEX IF NOT EXISTS editions_publisher ON editions (publisher_id)`);
const COLUMNS = 'id, title, pages, cents, published, author_id, publisher_id';
const one = db.prepare(`SELECT ${COLUMNS} FROM books WHERE id = ?`);
const page = db.prepare(`SELECT ${COLUMNS} FROM books WHERE publisher_id = ? AND id > ? ORDER BY id LIMIT ?`);
const insert = db.prepare(
  `INSERT INTO books (title, pages, cents, published, author_id, publisher_id) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
);
const insertEdition = db.prepare(
  'INSERT INTO editions (isbn, title, pages, cents, published, author_id, publisher_id) VALUES (?, ?, ?, ?, ?, ?, ?)',
);
const editions = db.prepare(
  'SELECT id, isbn, title, pages, cents, published, author_id, publisher_id FROM editions WHERE id > ? ORDER BY id LIMIT ?',
);
const { authors: LISTED, books: EMBEDDED } = AUTHORS_WITH_BOOKS;
const authors = db.prepare('SELECT id, name FROM authors WHERE id > ? ORDER BY id LIMIT ?');
const booksOfAll = db.prepare(
  `SELECT author_id, id, title, cents FROM books WHERE author_id IN (${Array(LISTED).fill('?').join()}) ORDER BY id`,
);
const booksOfOne = db.prepare('SELECT id, title, cents FROM books WHERE author_id = ? ORDER BY id LIMIT ?');
const app = express();
app.disable('etag').disable('x-powered-by');
app.get('/books/:id', (request, response) => {
  const row = one.get(Number(request.params.id)) as Stored | undefined;
  if (row === undefined) response.status(404).json(NOT_FOUND);
  else response.json(shown(row));
});
app.get('/books', (request, response) => {
  const asked = readPage(request.query);
  if (asked === undefined) {
    response.status(400).json(INVALID);
    return;
  }
  const rows = page.all(asked.publisher, asked.after, asked.limit + 1) as readonly Stored[];
  const found = rows.slice(0, asked.limit);
  const last = found.at(-1);
  if (rows.length > asked.limit && last !== undefined) response.set('link', linkOf(asked, last.id));
  response.json(found.map(shown));
});
app.get('/authors', (request, response) => {
  const { after, way } = request.query;
  const found = authors.all(Number(after), LISTED) as readonly {
    readonly id: number;
    readonly name: string;
  }[];
  if (way === 'in') {
    // The statement has one number of ids.
    const ids = Array.from({ length: LISTED }, (_, i) => found[i]?.id ?? 0);
    response.json(withBooks(found, (booksOfAll.all(...ids) as readonly OfAuthor[]).map(shown)));
    return;
  }
  const books = (id: number) => (booksOfOne.all(id, EMBEDDED) as readonly OfAuthor[]).map(shown);
  response.json(found.map((author) => ({ ...author, books: books(author.id) })));
});
app.post('/books', express.json(), (request, response) => {
  const book = readBook(request.body);
  if (book === undefined) {
    response.status(400).json(INVALID);
    return;
  }
  const cents = Math.round(Number(book.price) * 100);
  try {
    const { title, pages, published, author_id, publisher_id } = book;
    // The common type of both drivers does not name null.
    const values = [title, pages, cents, published as string, author_id, publisher_id];
    const { id } = insert.get(...values) as Stored;
    response
      .status(201)
      .set('location', `/books/${id}`)
      .json({ id, ...book });
  } catch (error) {
    if (!String(error).includes('FOREIGN KEY')) throw error;
    response.status(409).json(MISSING);
  }
});
app.post('/editions', async (request, response) => {
  const report = { created: 0, refused: 0 };
  let batch: (NewEdition | undefined)[] = [];
  const store = () => {
    db.exec('BEGIN');
    for (const edition of batch) report[isStored(edition) ? 'created' : 'refused']++;
    db.exec('COMMIT');
    batch = [];
  };
  for await (const line of createInterface({ input: request })) {
    batch.push(readEdition(line));
    if (batch.length === IMPORT_BATCH) store();
  }
  store();
  response.type('application/x-ndjson').end(`${JSON.stringify(report)}\n`);
});
app.get('/editions', async (_request, response) => {
  response.type('application/x-ndjson');
  for (let last = 0; ; ) {
    const rows = editions.all(last, EXPORT_PAGE) as readonly Stored[];
    if (rows.length === 0) break;
    last = rows.at(-1)?.id ?? last;
    const isTaken = response.write(rows.map((row) => `${JSON.stringify(shown(row))}\n`).join(''));
    if (!isTaken) await new Promise((resolve) => response.once('drain', resolve));
  }
  response.end();
});
app.listen(address.port, address.host);

/** Whether the constraints take an edition. */
function isStored(edition: NewEdition | undefined): boolean {
  if (edition === undefined) return false;
  const { isbn, title, pages, price, published, author_id, publisher_id } = edition;
  try {
    const cents = Math.round(Number(price) * 100);
    insertEdition.run(isbn, title, pages, cents, published as string, author_id, publisher_id);
    return true;
  } catch (error) {
    if (!String(error).includes('constraint')) throw error;
    return false;
  }
}

function shown<T extends Stored>({ cents, ...row }: T) {
  return { ...row, price: (cents / 100).toFixed(2) };
}
