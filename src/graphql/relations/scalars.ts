import {
  type ConstValueNode,
  GraphQLBoolean,
  GraphQLError,
  GraphQLFloat,
  GraphQLInt,
  GraphQLScalarType,
  GraphQLString,
  Kind,
  valueFromASTUntyped,
} from 'graphql';
import { describeValue } from '../../core/text.ts';
import type { ColumnType } from '../../relations/relation.ts';

/** The numbers that GraphQL's Int takes. */
const INT = { min: -(2 ** 31), max: 2 ** 31 - 1 } as const;
/** Names that GraphQL allows for the values of an enum. */
const ENUM_VALUE = /^(?!__|(?:true|false|null)$)[A-Za-z_]\w*$/;

/** A scalar whose values are those of JSON. The codec of the column judges them, with the place of a fault. */
function scalar(
  name: string,
  description: string,
  takes: readonly ('string' | 'number')[],
  specifiedByURL?: string,
): GraphQLScalarType {
  const read = (value: unknown): unknown => {
    if ((takes as readonly string[]).includes(typeof value)) return value;
    throw new GraphQLError(`${name} takes a ${takes.join(' or a ')}, not ${describeValue(value)}`);
  };
  return new GraphQLScalarType<unknown, unknown>({
    name,
    description,
    specifiedByURL,
    coerceOutputValue: (value) => value,
    coerceInputValue: read,
    // A number of a document is read as the text that it is, so that no digit is lost.
    coerceInputLiteral: (node: ConstValueNode) => {
      if (node.kind === Kind.STRING) return read(node.value);
      if (node.kind !== Kind.INT && node.kind !== Kind.FLOAT) return read(valueFromASTUntyped(node));
      return takes.includes('string') ? read(node.value) : read(Number(node.value));
    },
  });
}

/** It takes the ids of rows, which are texts, for columns that refer to these. */
const SAFE_INT = new GraphQLScalarType<unknown, unknown>({
  name: 'SafeInt',
  description: 'A whole number below 2^53, as a JSON number. A text of digits is accepted.',
  coerceOutputValue: (value) => value,
  coerceInputValue: readSafeInt,
  coerceInputLiteral: (node: ConstValueNode) =>
    readSafeInt(node.kind === Kind.INT ? Number(node.value) : valueFromASTUntyped(node)),
});

function readSafeInt(value: unknown): number {
  const number = typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number') return number;
  throw new GraphQLError(`SafeInt takes a number, not ${describeValue(value)}`);
}

const BIG_INT = scalar('BigInt', 'A whole number of 64 bits, as a text.', ['string', 'number']);
const DECIMAL = scalar('Decimal', 'An exact decimal number, as a text.', ['string', 'number']);
const DATE = scalar('Date', 'A date such as 2024-02-29.', ['string']);
const DATE_TIME = scalar(
  'DateTime',
  'A time of RFC 3339, returned in UTC with milliseconds.',
  ['string'],
  'https://scalars.graphql.org/andimarek/date-time.html',
);
const UUID = scalar(
  'UUID',
  'A UUID, returned in lower case.',
  ['string'],
  'https://www.rfc-editor.org/rfc/rfc9562',
);
const BYTES = scalar('Bytes', 'Bytes in base64.', ['string']);
const JSON_VALUE = new GraphQLScalarType<unknown, unknown>({
  name: 'JSON',
  description: 'Any JSON.',
  coerceOutputValue: (value) => value,
  coerceInputValue: (value) => value,
  coerceInputLiteral: (node) => valueFromASTUntyped(node),
});

/** The scalars of relations, besides those of GraphQL. */
export const RELATION_SCALARS: readonly GraphQLScalarType[] = [
  SAFE_INT,
  BIG_INT,
  DECIMAL,
  DATE,
  DATE_TIME,
  UUID,
  JSON_VALUE,
  BYTES,
];

/** The scalar of a type of columns; undefined for an enum whose values are names of GraphQL. */
export function scalarOf(type: ColumnType): GraphQLScalarType | undefined {
  switch (type.kind) {
    case 'serial':
      return SAFE_INT;
    case 'integer': {
      const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = type;
      return min >= INT.min && max <= INT.max ? GraphQLInt : SAFE_INT;
    }
    case 'bigint':
      return BIG_INT;
    case 'decimal':
      return DECIMAL;
    case 'number':
      return GraphQLFloat;
    case 'boolean':
      return GraphQLBoolean;
    case 'text':
      return GraphQLString;
    case 'date':
      return DATE;
    case 'timestamp':
      return DATE_TIME;
    case 'uuid':
      return UUID;
    case 'enum':
      return type.values.every((value) => ENUM_VALUE.test(value)) ? undefined : GraphQLString;
    case 'json':
      return JSON_VALUE;
    case 'bytes':
      return BYTES;
  }
}
