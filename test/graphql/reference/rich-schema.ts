import {
  GraphQLBoolean,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  GraphQLFloat,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isListType,
  isNonNullType,
  valueFromASTUntyped,
} from 'graphql';
import { type Context, inMood, laterIn, listMoods, moods, soonIn, type Values } from './moods.ts';
import { Thing } from './thing.ts';

type Fields = Record<string, GraphQLFieldConfig<unknown, Context>>;

const required = <T extends GraphQLOutputType>(type: T) => new GraphQLNonNull(type as never);
const list = (type: GraphQLOutputType) => new GraphQLList(type);

export const color = new GraphQLEnumType({
  name: 'Color',
  values: { RED: { value: { red: 255 } }, GREEN: { value: 'green!' }, BLUE: {} },
});
const colorRed = color.getValue('RED')?.value;

/** Takes anything, gives odd numbers only. */
const odd = new GraphQLScalarType({
  name: 'Odd',
  coerceInputValue(value) {
    if (typeof value !== 'number' || value % 2 !== 1) throw new Error(`${String(value)} is not odd`);
    return value;
  },
  coerceOutputValue(value) {
    if (typeof value !== 'number') throw new Error('a secret of the scalar');
    return value % 2 === 1 ? value : undefined;
  },
});
const json = new GraphQLScalarType({
  name: 'Json',
  parseValue: (value) => value,
  parseLiteral: (node, variables) => valueFromASTUntyped(node, variables as never),
  coerceOutputValue: (value) => value,
});

const one = new GraphQLInputObjectType({
  name: 'One',
  isOneOf: true,
  fields: { x: { type: GraphQLInt }, y: { type: GraphQLString } },
});
const input: GraphQLInputObjectType = new GraphQLInputObjectType({
  name: 'In',
  fields: () => ({
    a: { type: new GraphQLNonNull(GraphQLInt) },
    b: { type: GraphQLString, default: { value: 'bee' } },
    c: { type: new GraphQLList(new GraphQLNonNull(GraphQLInt)) },
    d: { type: color },
    e: { type: one },
    f: { type: input },
    g: { type: new GraphQLNonNull(GraphQLInt), default: { value: 5 } },
  }),
});

const node = new GraphQLInterfaceType({
  name: 'Node',
  fields: { ownText: { type: GraphQLString } },
  resolveType: (value) => Thing.kindOf(value),
});
const marked = new GraphQLInterfaceType({ name: 'Marked', fields: { ownText: { type: GraphQLString } } });

const alpha = new GraphQLObjectType<unknown, Context>({
  name: 'Alpha',
  interfaces: [node],
  fields: () => fields,
});
const beta = new GraphQLObjectType<unknown, Context>({
  name: 'Beta',
  interfaces: [node, marked],
  fields: () => fields,
  isTypeOf: (value) => Thing.kindOf(value) === 'Beta',
});
const gamma = new GraphQLObjectType<unknown, Context>({
  name: 'Gamma',
  interfaces: [marked],
  fields: () => fields,
  isTypeOf(value, { schedule, done }, info) {
    done.push(JSON.stringify(info.path));
    return laterIn(schedule, info, '?')(() => Thing.kindOf(value) === 'Gamma');
  },
});
const anything = new GraphQLUnionType({
  name: 'Anything',
  types: [alpha, beta, gamma],
  resolveType(value, { schedule, done }, info) {
    done.push(JSON.stringify(info.path));
    return laterIn(schedule, info, '!')(() => Thing.kindOf(value));
  },
});

/** Types that answer for themselves, after some microtasks or at once; what is broken one of them rejects. */
const delta = new GraphQLObjectType<unknown, Context>({
  name: 'Delta',
  fields: () => fields,
  isTypeOf(value, { done }, info) {
    done.push(`Delta? ${JSON.stringify(info.path)}`);
    return soonIn(
      info,
      '?',
    )(() => {
      if (Thing.kindOf(value) === 'Broken') throw new Error('a secret of the type');
      return Thing.kindOf(value) === 'Delta';
    });
  },
});
const epsilon = new GraphQLObjectType<unknown, Context>({
  name: 'Epsilon',
  fields: () => fields,
  isTypeOf: (value) => ['Epsilon', 'Broken'].includes(Thing.kindOf(value) ?? ''),
});
const zeta = new GraphQLObjectType<unknown, Context>({
  name: 'Zeta',
  fields: () => fields,
  isTypeOf: (value, _context, info) => soonIn(info, '!')(() => Thing.kindOf(value) === 'Zeta'),
});
const several = new GraphQLUnionType({ name: 'Several', types: [delta, epsilon, zeta] });
const slow = new GraphQLUnionType({
  name: 'Slow',
  types: [alpha, delta, zeta],
  resolveType: (value, _context, info) => soonIn(info, '.')(() => Thing.kindOf(value)),
});

const types: readonly (readonly [type: GraphQLOutputType, values: Values])[] = [
  [GraphQLString, { good: 'text', wrong: { secret: 1 } }],
  [GraphQLInt, { good: 3, wrong: 'three' }],
  [GraphQLFloat, { good: 1.5, wrong: Number.NaN }],
  [GraphQLID, { good: 7, wrong: 1.5 }],
  [GraphQLBoolean, { good: false, wrong: 'yes' }],
  [color, { good: colorRed, wrong: 'RED' }],
  [odd, { good: 3, wrong: 4 }],
  [odd, { good: 5, wrong: 'five' }],
  [json, { good: { a: [1, null] }, wrong: undefined }],
  [alpha, { good: new Thing('Alpha'), wrong: 5 }],
  [beta, { good: new Thing('Beta'), wrong: new Thing('Alpha') }],
  [gamma, { good: new Thing('Gamma'), wrong: new Thing('Alpha') }],
  [node, { good: new Thing('Alpha'), wrong: new Thing('Gamma') }],
  [node, { good: new Thing('Beta'), wrong: new Thing('Nobody') }],
  [node, { good: new Thing('Beta'), wrong: new Thing('Color') }],
  [marked, { good: new Thing('Gamma'), wrong: new Thing('Alpha') }],
  [anything, { good: new Thing('Gamma'), wrong: new Thing(undefined) }],
  [several, { good: new Thing('Delta'), wrong: new Thing('Nobody') }],
  [several, { good: new Thing('Zeta'), wrong: new Thing('Broken') }],
  [several, { good: new Thing('Broken'), wrong: 5 }],
  [slow, { good: new Thing('Zeta'), wrong: new Thing('Beta') }],
];

const fields: Fields = {
  ownText: { type: GraphQLString },
  ownNumber: { type: required(GraphQLString) },
  ownNone: { type: GraphQLString },
  ownError: { type: GraphQLString },
  ownThrows: { type: GraphQLString },
  ownList: { type: list(GraphQLString) },
  ownCall: { type: GraphQLString, args: { size: { type: GraphQLInt, default: { value: 2 } } } },
  ownLater: { type: required(GraphQLString) },
  ownChild: { type: alpha },
  ownMissing: { type: required(GraphQLString) },
  echo: {
    type: GraphQLString,
    args: {
      int: { type: GraphQLInt, default: { value: 3 } },
      text: { type: GraphQLString },
      list: { type: new GraphQLList(new GraphQLNonNull(GraphQLInt)) },
      nested: { type: new GraphQLList(new GraphQLList(GraphQLFloat)) },
      input: { type: input },
      color: { type: color, default: { value: 'GREEN' } },
      id: { type: GraphQLID },
      flag: { type: GraphQLBoolean },
      json: { type: json },
      odd: { type: odd },
      one: { type: one },
    },
    resolve: (_source, args) => JSON.stringify(args),
  },
  need: {
    type: required(GraphQLString),
    args: {
      value: { type: new GraphQLNonNull(GraphQLInt) },
      more: { type: new GraphQLNonNull(new GraphQLList(GraphQLInt)), default: { value: [1, 2] } },
      input: { type: input },
    },
    resolve: (_source, args) => JSON.stringify(args),
  },
  only: {
    type: GraphQLString,
    args: { value: { type: new GraphQLNonNull(GraphQLInt) } },
    resolve: (_source, args) => JSON.stringify(args),
  },
  info: {
    type: GraphQLString,
    args: { id: { type: GraphQLID }, text: { type: GraphQLString } },
    resolve(_source, args, context, info) {
      context.done.push(String(info.path.key));
      return JSON.stringify([
        args,
        info.fieldName,
        String(info.returnType),
        info.parentType.name,
        info.path,
        info.fieldNodes.length,
        info.operation.name?.value,
        Object.keys(info.fragments),
        info.variableValues.coerced,
        Object.keys(info.variableValues.sources),
      ]);
    },
  },
};

for (const [index, [type, values]] of types.entries()) {
  const wrappers = [
    type,
    required(type),
    list(type),
    required(list(required(type))),
    list(list(required(type))),
  ];
  for (const [depth, wrapped] of wrappers.entries()) {
    const isList = depth > 1;
    for (const [name, mood] of Object.entries({ ...moods, ...(isList ? listMoods : {}) })) {
      const ofList = Object.hasOwn(moods, name);
      fields[`${name}_${index}_${depth}`] = {
        type: wrapped,
        resolve: (_source, _args, context, info) =>
          inMood(mood, ofList ? valuesOf(wrapped, values) : valuesOf(itemOf(wrapped), values), context, info),
      };
    }
  }
}

function itemOf(type: GraphQLOutputType): GraphQLOutputType {
  const inner = isNonNullType(type) ? type.ofType : type;
  return isListType(inner) ? inner.ofType : inner;
}

/** A good list has two good values, a wrong one is none. */
function valuesOf(type: GraphQLOutputType, values: Values): Values {
  const inner = isNonNullType(type) ? type.ofType : type;
  if (!isListType(inner)) return values;
  const { good } = valuesOf(inner.ofType, values);
  return { good: [good, good], wrong: 5 };
}

const steps: Fields = {};
for (const [name, mood] of Object.entries(moods)) {
  for (const [index, type] of [GraphQLString, required(GraphQLString), alpha].entries()) {
    const good = type === alpha ? new Thing('Alpha') : name;
    steps[`${name}_${index}`] = {
      type,
      args: { id: { type: GraphQLID } },
      resolve: (_source, _args, context, info) => {
        context.done.push(String(info.path.key));
        return inMood(mood, { good, wrong: { secret: 1 } }, context, info);
      },
    };
  }
}

/** A schema with every kind of type, on which resolvers do everything that they may. */
export const richSchema = new GraphQLSchema({
  query: new GraphQLObjectType<unknown, Context>({ name: 'Query', fields: () => fields }),
  mutation: new GraphQLObjectType<unknown, Context>({ name: 'Mutation', fields: steps }),
  types: [beta, gamma],
});
