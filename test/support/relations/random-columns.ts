import fc from 'fast-check';
import { MAX_INT64, MIN_INT64 } from '../../../src/relations/number-codecs.ts';
import type { ColumnType } from '../../../src/relations/relation.ts';

type Kind = ColumnType['kind'];

/** Characters whose order differs between units, code points, cases and locales. */
const CHARACTERS = [
  'a',
  'A',
  'b',
  'Z',
  '[',
  '_',
  ' ',
  "'",
  '"',
  '\\',
  '\n',
  'ß',
  'é',
  'É',
  'İ',
  '漢',
  '\uffff',
  '\ue000',
  '🦊',
  '0',
];
const MAX_SAFE = Number.MAX_SAFE_INTEGER;

/** Two bounds in order, or fewer. */
function bounds<T extends number | bigint>(value: fc.Arbitrary<T>) {
  return fc
    .tuple(fc.option(value, { nil: undefined }), fc.option(value, { nil: undefined }))
    .map(([a, b]): { readonly min?: T; readonly max?: T } => {
      const isReversed = a !== undefined && b !== undefined && a > b;
      const min: T | undefined = isReversed ? b : a;
      const max: T | undefined = isReversed ? a : b;
      return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
    });
}

function decimal(value: bigint, scale: number): string {
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  return `${value < 0n ? '-' : ''}${whole}${scale === 0 ? '' : `.${digits.slice(-scale)}`}`;
}

const decimals = fc.integer({ min: 1, max: 18 }).chain((precision) =>
  fc.integer({ min: 0, max: precision }).chain((scale) => {
    const limit = 10n ** BigInt(precision) - 1n;
    return bounds(fc.bigInt(-limit, limit)).map(({ min, max }) => ({
      kind: 'decimal' as const,
      precision,
      scale,
      ...(min === undefined ? {} : { min: decimal(min, scale) }),
      ...(max === undefined ? {} : { max: decimal(max, scale) }),
    }));
  }),
);

const finite = fc.double({ noNaN: true, noDefaultInfinity: true });

/** Random types of each kind. */
export const columnTypes: { readonly [K in Kind]: fc.Arbitrary<ColumnType> } = {
  serial: fc.record({ kind: fc.constant('serial'), open: fc.boolean() }),
  integer: bounds(fc.maxSafeInteger()).map((given) => ({ kind: 'integer', ...given })),
  bigint: bounds(fc.bigInt(MIN_INT64, MAX_INT64)).map((given) => ({ kind: 'bigint', ...given })),
  decimal: decimals,
  number: bounds(finite).map((given) => ({ kind: 'number', ...given })),
  boolean: fc.constant({ kind: 'boolean' }),
  text: fc.record({ kind: fc.constant('text'), max: fc.integer({ min: 1, max: 40 }), fold: fc.boolean() }),
  date: fc.constant({ kind: 'date' }),
  timestamp: fc.constant({ kind: 'timestamp' }),
  uuid: fc.constant({ kind: 'uuid' }),
  enum: fc
    .uniqueArray(texts(1, 10), { minLength: 1, maxLength: 5 })
    .map((values) => ({ kind: 'enum', values })),
  json: fc.constant({ kind: 'json', maxBytes: 65_536 }),
  bytes: fc.record({ kind: fc.constant('bytes'), max: fc.integer({ min: 1, max: 50 }) }),
};

function texts(min: number, max: number): fc.Arbitrary<string> {
  const characters = fc.array(fc.constantFrom(...CHARACTERS), { minLength: min, maxLength: max });
  return characters.map((all) => all.join(''));
}

/** Values of a type that a client may send as JSON. */
export function jsonOf(type: ColumnType): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'serial':
      return fc.integer({ min: 1, max: MAX_SAFE });
    case 'integer': {
      const { min = -MAX_SAFE, max = MAX_SAFE } = type;
      return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
    }
    case 'bigint': {
      const { min = MIN_INT64, max = MAX_INT64 } = type;
      return fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max)).map(String);
    }
    case 'decimal': {
      const { precision, scale, min, max } = type;
      const limit = 10n ** BigInt(precision) - 1n;
      const least = min === undefined ? -limit : BigInt(min.replace('.', ''));
      const most = max === undefined ? limit : BigInt(max.replace('.', ''));
      const all = fc.bigInt({ min: least, max: most });
      const isNearZero = least <= -150n && most >= 150n;
      const value = isNearZero ? fc.oneof(all, fc.bigInt({ min: -150n, max: 150n })) : all;
      return value.map((each) => decimal(each, scale));
    }
    case 'number': {
      const { min, max } = type;
      const given = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
      const any = fc.double({ noNaN: true, noDefaultInfinity: true, ...given });
      // JSON of JavaScript has no negative zero.
      return any.map((value) => value + 0);
    }
    case 'boolean':
      return fc.boolean();
    case 'text':
      return texts(0, type.max);
    case 'date':
      return dates().map((date) => date.toISOString().slice(0, 10));
    case 'timestamp':
      return dates().map((date) => date.toISOString());
    case 'uuid':
      return fc.uuid();
    case 'enum':
      return fc.constantFrom(...type.values);
    case 'json':
      return fc
        .oneof(
          fc.json({ maxDepth: 4 }),
          texts(0, 5).map((text) => JSON.stringify({ [text]: text, a: 1.5 })),
        )
        .map((text): unknown => JSON.parse(text))
        .filter((value) => value !== null && !/\\u(?:0000|d[89a-f])|__proto__/.test(JSON.stringify(value)));
    case 'bytes':
      return fc.uint8Array({ maxLength: type.max }).map((bytes) => Buffer.from(bytes).toString('base64'));
  }
}

function dates(): fc.Arbitrary<Date> {
  const min = new Date('0001-01-01T00:00:00.000Z');
  const max = new Date('9999-12-31T23:59:59.999Z');
  return fc.oneof(
    fc.date({ min, max, noInvalidDate: true }),
    fc.constantFrom(min, max, new Date(0), new Date(-1), new Date('1582-10-10T00:00:00Z')),
  );
}
