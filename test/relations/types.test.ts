import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runCommand } from '../support/run-command.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const staff = { scope: 'staff' };

/** Every type of columns, with every way in which a client may or may not write one. */
const RELATIONS = {
  authors: {
    columns: { id: { type: 'serial', open: true }, name: { type: 'text', max: 120 } },
    rules: { read: staff, create: staff },
  },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      kind: { type: 'enum', values: ["a'b", 'c\\d', 'e"f'], default: "a'b" },
      pages: { type: 'integer' },
      big: { type: 'bigint' },
      price: { type: 'decimal', precision: 10, scale: 2, default: '9.90' },
      weight: { type: 'number', nullable: true },
      is_read: { type: 'boolean', default: false },
      published: { type: 'date', nullable: true },
      added: { type: 'timestamp', default: 'now' },
      code: { type: 'uuid', default: 'v4' },
      data: { type: 'json' },
      more: { type: 'json', nullable: true },
      cover: { type: 'bytes', max: 100, nullable: true },
      cost: { type: 'integer', nullable: true, read: staff, write: staff },
      note: { type: 'text', nullable: true, read: 'anyone' },
      state: { type: 'text', nullable: true, readonly: true },
      secret: { type: 'text', nullable: true, write: 'nobody' },
      origin: { type: 'text', immutable: true, nullable: true },
      owner: { type: 'text', nullable: true, set: { caller: '/sub' } },
      author: { type: 'reference', to: 'authors' },
      editor: { type: 'reference', to: 'authors', nullable: true, inverse: 'edited' },
      keeper: { type: 'reference', to: 'users', nullable: true },
    },
    computed: { label: { concat: ['title', { value: '!' }] } },
    rules: { read: 'anyone', create: 'anyone', update: 'anyone', delete: 'anyone' },
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 60 } },
    rules: { read: 'anyone', create: 'anyone', update: 'anyone' },
  },
  tags: {
    one: 'tag',
    key: ['name'],
    columns: { name: { type: 'text', max: 20 } },
    many: { books: { through: 'book_tags' } },
  },
  book_tags: {
    key: ['book_id', 'tag_name'],
    columns: {
      book: { type: 'reference', to: 'books', inverse: 'tagged' },
      tag: { type: 'reference', to: 'tags', columns: ['tag_name'], inverse: 'entries' },
    },
  },
  users: { columns: { phone: { type: 'text', max: 30, nullable: true } } },
};

/** A folder with a configuration. */
async function configured(config: object) {
  const folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(config));
  return folder;
}

const types = (cwd: string, ...args: readonly string[]) => runCommand(['types', ...args], { cwd });

test('the command writes a file, says whether one differs, and writes it anew only then', async () => {
  await using folder = await configured({ relations: RELATIONS });
  const path = join(folder.path, 'portico.d.ts');
  const missing = await types(folder.path, '--check');
  assert.deepEqual(missing, {
    code: 1,
    stdout: '',
    stderr: 'portico.d.ts is not there; run "portico types".\n',
  });
  assert.deepEqual(await types(folder.path), { code: 0, stdout: 'portico.d.ts written.\n', stderr: '' });
  const text = await readFile(path, 'utf8');
  const fresh = { code: 0, stdout: 'portico.d.ts is up to date.\n', stderr: '' };
  assert.deepEqual(await types(folder.path, '--check'), fresh);
  assert.deepEqual(await types(folder.path), fresh);
  await writeFile(path, text.replaceAll('\n', '\r\n'));
  assert.deepEqual(await types(folder.path, '--check'), fresh);
  await writeFile(path, text.replace('Book {', 'Livre {'));
  const differs = await types(folder.path, '--check', '--out', 'portico.d.ts');
  assert.deepEqual(
    [differs.code, differs.stderr],
    [1, 'portico.d.ts differs from the declaration; run "portico types".\n'],
  );
  await types(folder.path);
  assert.equal(await readFile(path, 'utf8'), text);
  await types(folder.path, '--out', 'other.d.ts');
  assert.equal(await readFile(join(folder.path, 'other.d.ts'), 'utf8'), text);
  const elsewhere = await types(folder.path, '--out', 'no/such.d.ts', '--check');
  assert.match(
    elsewhere.stderr,
    /^no\/such\.d\.ts is not there; run "portico types --out no\/such\.d\.ts"\.$/m,
  );
  const unwritable = await types(folder.path, '--out', 'no/such.d.ts');
  assert.deepEqual([unwritable.code, /cannot be written: ENOENT/.test(unwritable.stderr)], [2, true]);
});

test('users are a relation where the service serves them so', async () => {
  await using folder = await configured({
    rest: { users: 'standard' },
    relations: { users: RELATIONS.users },
  });
  await types(folder.path);
  await writeFile(
    join(folder.path, 'program.ts'),
    `import type { Relations, User, UserCreate } from './portico.d.ts';
const user: User = { id: 1, name: 'Ada', email: 'ada@x', phone: null };
const made: UserCreate = { name: 'Ada', email: 'ada@x' };
const key: Relations['users']['key'] = 1;
export const all = [user, made, key];
`,
  );
  assert.equal(await compiled(folder.path, { lib: ['es2024'], types: [] }), '');
});

test('a declaration without relations, or with two types of one name, is refused', async () => {
  const columns = { name: { type: 'text', max: 5 } };
  const refused = [
    [{}, /The configuration declares no relations/],
    [
      { relations: { a: { one: 'b', columns }, c: { one: 'bCreate', columns } } },
      /relations\.c would have the type BCreate, as relations\.a; declare another "one"/,
    ],
    [{ relations: { a: { one: 'textTest', columns } } }, /the type TextTest, as a type that each file has/],
  ] as const;
  for (const [config, message] of refused) {
    await using folder = await configured(config);
    const { code, stderr } = await types(folder.path);
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr);
  }
});

/** A program that uses the types of the relations. */
const PROGRAM = `
import { type ChangeEvent, client, type Page, PorticoError, result } from 'portico/client';
import type { Author, Book, BookCreate, BookNested, BookPatch, BookWhere, Loan, LoanPatch, Relations, User } from './portico.d.ts';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

same<Book['kind'], "a'b" | 'c\\\\d' | 'e"f'>(true);
same<Book['big'], string>(true);
same<Book['cost'], number | null | undefined>(true);
same<keyof User, 'id' | 'name' | 'email' | 'phone'>(true);
const created: BookCreate = { title: 'Emma', pages: 1, big: '1', data: {}, author_id: 1 };
const nested: BookNested = {
  title: 'Emma', pages: 1, big: '1', data: 1, author: { name: 'Jane', edited: [] }, editor: null,
  loans: [{ reader: 'ann' }],
};
const patch: BookPatch = { price: '1.00', weight: null, author_id: 2 };
const none: LoanPatch = {};
const where: BookWhere = {
  title: { prefix: 'E' }, price: { gte: '1' }, kind: { in: ['e"f'] }, published: null, is_read: true,
  more: { isNull: true }, author: { name: 'Jane' }, keeper: { phone: '1' },
  loans: { none: { reader: ['x', 'y'].join() } }, or: [{ pages: 1 }, { not: { pages: { lt: 3 } } }],
};
void [created, nested, patch, none, where];

// @ts-expect-error it lacks what is required
const lacks: BookCreate = { title: 'Emma', pages: 1, big: '1', data: {} };
// @ts-expect-error bigint is a text
const big: BookCreate = { ...created, big: 1 };
// @ts-expect-error no other value of the enum
const kind: BookPatch = { kind: 'x' };
// @ts-expect-error not null
const nulls: BookPatch = { title: null };
// @ts-expect-error at most one of a reference and its row
const both: BookNested = { ...nested, author_id: 1 };
// @ts-expect-error the row around it is its book
const inner: BookNested = { ...nested, loans: [{ reader: 'ann', book_id: 1 }] };
// @ts-expect-error texts alone have prefixes
const prefix: BookWhere = { price: { prefix: '1' } };
// @ts-expect-error a reference is one row
const some: BookWhere = { author: { some: { name: 'Jane' } } };
// @ts-expect-error the key cannot change
const key: LoanPatch = { reader: 'ben' };
type Unwritable = 'id' | 'state' | 'secret' | 'owner' | 'label';
same<Extract<keyof BookCreate, Unwritable>, never>(true);
same<Extract<keyof BookPatch, Unwritable | 'origin'>, never>(true);
same<Extract<keyof BookCreate, 'origin'>, 'origin'>(true);
void [lacks, big, kind, nulls, both, inner, prefix, some, key];

export async function use(signal: AbortSignal): Promise<void> {
  const portico = client<Relations>('http://127.0.0.1:8000', { token: async () => 'x', headers: { a: 'b' } });
  const page = await portico.books.list({ where, sort: ['-published', 'author.name'], limit: 3, count: true });
  same<typeof page, Page<Book>>(true);
  const next: Page<Book> | undefined = await page.next();
  const book = await portico.books.get(1, {
    fields: ['title', 'price'],
    embed: { author: { fields: ['name'] }, loans: true, keeper: true, editor: { embed: { edited: { limit: 2, fields: ['id'] } } } },
  });
  const title: string = book.title;
  // A rule may hide the author.
  const author: { readonly name: string } | null = book.author;
  const readers: readonly string[] = book.loans.map((loan) => loan.reader);
  const edited: number | undefined = book.editor?.edited[0]?.id;
  const tagged = await portico.tags.list({ embed: { books: { fields: ['title'] }, entries: { embed: { tag: { where: { name: 'x' } } } } } });
  const first: string | undefined = tagged.rows[0]?.books[0]?.title;
  const maybe: null | { readonly name: string } | undefined = tagged.rows[0]?.entries[0]?.tag;
  // @ts-expect-error its condition may leave it out
  void tagged.rows[0]?.entries[0]?.tag.name;
  // @ts-expect-error it was not asked for
  void book.pages;
  // @ts-expect-error it may be null
  void book.keeper.name;
  // @ts-expect-error no such column
  await portico.books.list({ fields: ['titel'] });
  // @ts-expect-error no such option
  await portico.books.list({ filter: {} });
  // @ts-expect-error no such relation
  await portico.books.list({ embed: { reviews: true } });
  const loan: Loan = await portico.loans.put([1, 'ann'], {});
  // @ts-expect-error both parts of the key
  await portico.loans.get(1);
  // @ts-expect-error in their order
  await portico.loans.get(['ann', 1]);
  // @ts-expect-error the key is in the path
  await portico.loans.put([1, 'ann'], { reader: 'ann' });
  const change = await portico.books.update(1, { title: 'x' }, { ifMatch: book });
  const upserted: Author = await portico.authors.upsert({ name: 'Jane' }, { on: ['name'], ignore: true });
  // @ts-expect-error an upsert takes no rows within rows
  await portico.authors.upsert({ name: 'Jane', books: [] }, { on: ['name'] });
  await portico.batch([
    { create: 'authors', row: { name: 'Jane' } },
    { create: 'books', row: { ...created, author_id: result(0, 'id') } },
    { update: 'books', key: result(1, 'id'), patch: { price: '3.00' }, ifMatch: '"1"' },
    { upsert: 'tags', row: { name: 'x' }, on: ['name'] },
    { put: 'loans', key: [1, 'ann'], row: {} },
    { remove: 'books', key: 1 },
  ]);
  // @ts-expect-error a row of another relation
  await portico.batch([{ create: 'authors', row: created }]);
  for await (const event of portico.books.follow({ from: '1.2', types: ['created'], where: { title: 'x' }, signal })) {
    same<typeof event, ChangeEvent<'books', Book>>(true);
    if (event.type === 'updated') void event.row.title;
    // @ts-expect-error a caller may not see it any more
    else if (event.type === 'deleted') void event.row.title;
  }
  for await (const event of portico.follow(['books', 'loans'])) {
    if (event.relation === 'loans') void event.row?.reader;
    // @ts-expect-error it is a book
    else void event.row?.reader;
  }
  const loose = client('http://127.0.0.1:8000');
  const rows: readonly Readonly<Record<string, unknown>>[] = (await loose.relation('x').list({ fields: ['a'], embed: { b: true } })).rows;
  await loose.books?.update(['a', 1], { any: 1 });
  await loose.batch([{ create: 'x', row: { y: 1 } }]);
  void [next, title, author, readers, edited, first, maybe, loan, change, upserted, rows, new PorticoError(new Response(), {}).code];
}
`;

const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');

/** Compiles a folder as a program of a browser or of Node; resolves to what the compiler says. */
async function compiled(folder: string, options: object): Promise<string> {
  const compilerOptions = {
    ...{ noEmit: true, strict: true, target: 'es2024', noUncheckedIndexedAccess: true, skipLibCheck: false },
    ...{ module: 'preserve', moduleResolution: 'bundler', allowImportingTsExtensions: true, ...options },
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', '.'], {
    cwd: folder,
  }).catch((error: { readonly stdout: string }) => error);
  return stdout;
}

test('programs for browsers and for Node compile with the types, and wrong ones do not', async () => {
  await using folder = await configured({ relations: RELATIONS });
  await types(folder.path);
  await mkdir(join(folder.path, 'node_modules'));
  await symlink(ROOT, join(folder.path, 'node_modules/portico'));
  await symlink(join(ROOT, 'node_modules/@types'), join(folder.path, 'node_modules/@types'));
  await writeFile(join(folder.path, 'program.ts'), PROGRAM);
  assert.equal(await compiled(folder.path, { lib: ['es2024', 'dom', 'dom.iterable'], types: [] }), '');
  const node = {
    lib: ['es2024'],
    types: ['node'],
    exactOptionalPropertyTypes: true,
    verbatimModuleSyntax: true,
  };
  assert.equal(await compiled(folder.path, node), '');
});

test('rows, bodies and conditions that the service takes and returns have these types', async () => {
  const token = 'staff-token-0123456789';
  const api = { tokens: { staff: { secret: token, scopes: ['staff', '*:read', '*:write'] } } };
  await using service = await startTestService({
    module: `export default ${JSON.stringify({ api, relations: RELATIONS })};`,
    env: { INTERFACES: 'rest' },
    listens: true,
  });
  const literals: string[] = [];
  const send = async (method: string, path: string, body?: unknown, headers = {}) => {
    const reply = await fetch(`${service.urls.rest}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await reply.text();
    assert.ok(reply.ok, `${method} ${path}: ${text}`);
    return text;
  };
  /** Sends a body, and keeps it and the reply as literals of their types. */
  const sent = async (method: string, path: string, name: string, body: object, kind = 'Create') => {
    literals.push(`${name}${kind} = ${JSON.stringify(body)}`, `${name} = ${await send(method, path, body)}`);
  };
  await sent('POST', '/authors', 'Author', { name: 'Jane' });
  await sent('POST', '/authors', 'Author', { id: 7, name: 'Ann' });
  const least = { title: 'Emma', pages: 1, big: '9007199254740993', data: [1, { a: null }], author_id: 1 };
  await sent('POST', '/books', 'Book', least);
  await sent('POST', '/books', 'Book', {
    ...{
      ...least,
      kind: 'e"f',
      weight: 0.5,
      is_read: true,
      published: '2024-02-29',
      price: '1.5',
      more: null,
    },
    ...{ added: '2024-02-29T12:30:00+01:00', cover: 'AAH/', cost: 3, note: 'n', origin: 'o', editor_id: 7 },
    code: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
  });
  await sent(
    'PATCH',
    '/books/1',
    'Book',
    { title: 'x', weight: null, price: '2', kind: 'c\\d', more: 1 },
    'Patch',
  );
  await sent('PUT', '/loans/1,ann', 'Loan', {}, "Relation['put']");
  const { author_id: _, ...rest } = least;
  const tree = { ...rest, author: { name: 'Cy', edited: [] }, editor: null, loans: [{ reader: 'ben' }] };
  await send('POST', '/books', tree);
  literals.push(`BookNested = ${JSON.stringify(tree)}`);
  const where = {
    author: { name: { prefix: 'J' } },
    or: [{ loans: { some: { reader: 'ann' } } }, { more: null }],
  };
  const found = await send('GET', `/books?where=${encodeURIComponent(JSON.stringify(where))}`);
  literals.push(`BookWhere = ${JSON.stringify(where)}`, `readonly Book[] = ${found}`);
  // Those who may not read a column get rows without it.
  literals.push(`readonly Book[] = ${await send('GET', '/books', undefined, { authorization: '' })}`);
  const shown = await send('GET', '/books/1?fields=*,author(*),editor(*),loans(*),tagged(*)');
  literals.push(
    `Book & { author: Author | null; editor: Author | null; loans: readonly Loan[]; tagged: readonly Book_tag[] } = ${shown}`,
  );

  await using folder = await configured({ api, relations: RELATIONS });
  assert.equal((await types(folder.path)).code, 0);
  const names = "import type * as all from './portico.d.ts';";
  const typed = literals.map((each, i) => {
    const [type = '', ...value] = each.split(' = ');
    const qualified = type.replaceAll(/\b[A-Z]\w+/g, 'all.$&');
    return `export const v${i}: ${qualified} = ${value.join(' = ')};`;
  });
  await writeFile(join(folder.path, 'literals.ts'), [names, ...typed, ''].join('\n'));
  assert.ok(literals.length > 16);
  assert.equal(
    await compiled(folder.path, { lib: ['es2024'], types: [], exactOptionalPropertyTypes: true }),
    '',
  );
});
