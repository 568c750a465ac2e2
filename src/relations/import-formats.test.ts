import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EntrySource, entryReader, type ImportFormat } from './import.ts';
import { type ImportEntry, LineDecoder } from './import-readers.ts';
import type { NewUser } from './user.ts';
import { userImports } from './user-stores.ts';

type Entry = ImportEntry<NewUser>;

const target = userImports({
  importUsers: () => assert.fail('nothing is stored'),
  importAll: () => assert.fail('nothing is stored'),
});
const MAX_LINE = target.maxLine;

/** The lines that a format finds in bytes that come in parts of the given sizes, over and over. */
function read(format: ImportFormat, bytes: Uint8Array, sizes: readonly number[] = [bytes.length]) {
  const entries: Entry[] = [];
  const take = (entry: Entry) => void entries.push(entry);
  const decoder = new LineDecoder();
  const reader = entryReader(format, target);
  for (let at = 0, nth = 0; at < bytes.length; nth++) {
    const end = at + Math.max(1, sizes[nth % sizes.length] ?? 1);
    reader.push(decoder.decode(bytes.subarray(at, end)), take);
    at = end;
  }
  reader.push(decoder.end(), take);
  reader.end(take);
  return entries;
}

const bytesOf = (text: string) => Buffer.from(text);
const summary = (entries: readonly Entry[]) =>
  entries.map((entry) => ('row' in entry ? [entry.line, entry.row.name] : [entry.line, entry.code]));

/** Texts with everything that a format gives a meaning to, of any length of UTF-8. */
const name = fc
  .array(
    fc.constantFrom(
      'a',
      'B',
      ' ',
      '"',
      ',',
      '\r',
      '\n',
      '\\',
      '[',
      '}',
      '=1+1',
      'é',
      '漢',
      '😀',
      '\ufeff',
      '\ufffd',
    ),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((parts) => `n${parts.join('')}`);
const user = fc.record({ name, email: name.map((text) => `${text}@x`) }, { noNullPrototype: true });
const users = fc.array(user, { maxLength: 8 });
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
/** Quoted where it must be. */
const cell = (text: string) => (/[",\r\n]/.test(text) ? quoted(text) : text);

const WRITERS: Readonly<
  Record<string, readonly [ImportFormat, (users: readonly { name: string; email: string }[]) => string]>
> = {
  NDJSON: ['ndjson', (all) => all.map((user) => `${JSON.stringify(user)}\n`).join('')],
  'NDJSON without a last line feed': [
    'ndjson',
    (all) => all.map((user) => JSON.stringify(user)).join('\r\n'),
  ],
  array: ['array', (all) => JSON.stringify(all, undefined, 1)],
  CSV: [
    'csv',
    (all) => ['name,email', ...all.map((user) => `${cell(user.name)},${cell(user.email)}`)].join('\n'),
  ],
  'quoted CSV': [
    'csv',
    (all) =>
      `\ufeff"id","EMAIL","name"\r\n${all.map((user) => `7,${quoted(user.email)},${quoted(user.name)}\r\n`).join('')}`,
  ],
};

for (const [title, [format, write]] of Object.entries(WRITERS)) {
  test(`${title} gives the users that were written, however its bytes are cut`, () => {
    fc.assert(
      fc.property(users, sizes, (given, cuts) => {
        const entries = read(format, bytesOf(write(given)), cuts);
        assert.deepEqual(
          entries.map((entry) => ('row' in entry ? entry.row : entry)),
          given,
        );
        for (const [i, { line }] of entries.entries()) assert.ok(line > (entries[i - 1]?.line ?? 0));
      }),
    );
  });

  test(`${title} with any bytes in it gives the same however it is cut`, () => {
    fc.assert(
      fc.property(
        users,
        fc.uint8Array({ minLength: 1, maxLength: 6 }),
        fc.nat(),
        sizes,
        (given, noise, at, cuts) => {
          const bytes = bytesOf(write(given));
          const place = at % (bytes.length + 1);
          const mixed = Buffer.concat([bytes.subarray(0, place), noise, bytes.subarray(place)]);
          const outcome = (parts: readonly number[]) => {
            try {
              return read(format, mixed, parts);
            } catch (error) {
              return String(error);
            }
          };
          assert.deepEqual(outcome(cuts), outcome([mixed.length]));
        },
      ),
    );
  });
}

test('a line that is wrong fails alone', () => {
  const lines = [
    '{"name":"a","email":"a@x"}',
    '{"name":"b","email"',
    '',
    '{"name":"c"}',
    '{"name":"d","email":"d@x","__proto__":1}',
    `{"name":"${'e'.repeat(MAX_LINE)}"}`,
    '{"name":"f\\ud800","email":"f@x"}',
    '[]',
    '{"name":"g","email":"g@x","age":1}',
  ];
  for (const cuts of [[7], [64 * 1024], [1_000_000]]) {
    assert.deepEqual(summary(read('ndjson', bytesOf(lines.join('\n')), cuts)), [
      [1, 'a'],
      [2, 'MALFORMED_JSON'],
      [4, 'INVALID_USER'],
      [5, 'PROTO_KEY'],
      [6, 'LINE_TOO_LONG'],
      [7, 'INVALID_USER'],
      [8, 'INVALID_USER'],
      [9, 'g'],
    ]);
  }
  const csv = [
    'name,email',
    'a,a@x',
    'b',
    'c"c,c@x',
    '"d"d,d@x',
    'e,"e@x',
    'f,f@x',
    '"g\ng",g@x',
    'h,h@x',
    ',i@x',
  ];
  assert.deepEqual(summary(read('csv', bytesOf(csv.join('\n')), [5])), [
    [2, 'a'],
    [3, 'MALFORMED_CSV'],
    [4, 'MALFORMED_CSV'],
    [5, 'MALFORMED_CSV'],
    [6, 'MALFORMED_CSV'],
    [7, 'f'],
    [8, 'g\ng'],
    [10, 'h'],
    [11, 'INVALID_USER'],
  ]);
  const array = '[{"name":"a","email":"a@x"},{"name":},7,{"name":"b","email":"b@x"}]';
  assert.deepEqual(summary(read('array', bytesOf(array), [3])), [
    [1, 'a'],
    [2, 'MALFORMED_JSON'],
    [3, 'INVALID_USER'],
    [4, 'b'],
  ]);
});

test('wrong UTF-8 costs its line alone, and a replacement character elsewhere is a character', () => {
  const bytes = Buffer.concat([
    bytesOf('{"name":"\ufffd","email":"a@x"}\n{"name":"'),
    Buffer.from([0xff, 0xc3]),
    bytesOf('","email":"b@x"}\n{"name":"é","email":"c@x"}\n'),
  ]);
  const expected = [
    [1, '\ufffd'],
    [2, 'INVALID_UTF8'],
    [3, 'é'],
  ];
  assert.deepEqual(summary(read('ndjson', bytes)), expected);
  assert.deepEqual(summary(read('ndjson', bytes, [1])), expected);
});

test('what no line can be blamed for is refused as a whole, and says why', () => {
  for (const [format, text, message] of [
    ['csv', 'name,mail\na,a@x\n', /no column "mail"; did you mean email\?; there are id, name and email/],
    ['csv', 'name\na\n', /does not name the column "email"/],
    ['csv', 'name,email,NAME\n', /"name" occurs twice/],
    ['csv', '', /does not name the columns/],
    ['csv', '"name,email\na,a@x\n', /quote is not closed/],
    ['array', '{"name":"a"}', /not a JSON array/],
    ['array', '', /does not end/],
    ['array', '[{"name":"a","email":"a@x"}', /does not end/],
    ['array', '[] 1', /after the array/],
    ['array', `[{"name":"${'a'.repeat(2 * MAX_LINE)}`, /longer than 65536 characters, or not closed/],
  ] as const) {
    assert.throws(() => read(format, bytesOf(text)), message, text.slice(0, 40));
  }
});

test('a record costs the same however finely it is cut', () => {
  // 30,000 pieces of a quoted field that does not end. Read from its beginning for each of them it took ten seconds.
  const began = process.threadCpuUsage();
  const text = `name,email\n"${'""'.repeat(30_000)}`;
  assert.deepEqual(summary(read('csv', bytesOf(text), [2])), [[2, 'MALFORMED_CSV']]);
  const { user, system } = process.threadCpuUsage(began);
  assert.ok(user + system < 2_000_000, `${user + system} us`);
});

test('single bytes are gathered until something may end, and none is lost', () => {
  const texts: Readonly<Record<ImportFormat, string>> = {
    ndjson: '{"name":"é","email":"a@x"}\n{"name":"b","email":"b@x"}',
    csv: 'name,email\n"é",a@x\nb,"b@x"',
    array: '[{"name":"é","email":"a@x"},{"name":"b","email":"b@x"}]',
  };
  for (const [format, text] of Object.entries(texts)) {
    const names: string[] = [];
    const take = (entry: Entry) => void names.push('row' in entry ? entry.row.name : entry.code);
    const source = new EntrySource(format as ImportFormat, target, 1_000);
    const bytes = bytesOf(text);
    const half = bytes.indexOf('b@x');
    for (const byte of bytes.subarray(0, half)) source.push(Uint8Array.of(byte), take);
    assert.deepEqual(names, ['é'], format);
    for (const byte of bytes.subarray(half)) source.push(Uint8Array.of(byte), take);
    source.end(take);
    assert.deepEqual(names, ['é', 'b'], format);
  }
});
