import fc from 'fast-check';
import {
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isLeafType,
  isObjectType,
} from 'graphql';

/** A document with the variables for some runs of its operations. */
export interface Case {
  readonly document: string;
  readonly runs: readonly { readonly operationName: string; readonly variables: Record<string, unknown> }[];
}

/** By variable: its declaration, and values that it takes. */
const variables: Readonly<Record<string, readonly [declared: string, ...good: unknown[]]>> = {
  int: ['Int', 0, -7],
  intReq: ['Int!', 1, 2_147_483_647],
  intDef: ['Int = 7', 8],
  text: ['String', 'x', ''],
  textDef: ['String! = "d"', 'é𝒳'],
  id: ['ID', 'a', 12],
  idReq: ['ID!', '1', 2],
  moreReq: ['[Int]!', [1, null], 4],
  float: ['Float', 1.5, 2, 1e300],
  flag: ['Boolean!', true, false],
  flagDef: ['Boolean = true', true, false],
  color: ['Color', 'RED', 'BLUE'],
  colors: ['[Color!]', ['RED', 'GREEN'], 'RED'],
  input: ['In', { a: 1 }, { a: 2, b: null, c: [1], d: 'RED', e: { x: 1 } }, { a: 3, f: { a: 4, c: 5 } }],
  inputReq: ['In! = {a: 9, b: "n"}', { a: 1, e: { y: 'q' } }],
  list: ['[Int!]', [1, 2], [], 3],
  nested: ['[[Float]]', [[1.5], null, [null, 2]], [1, 2], 5],
  one: ['One', { x: 1 }, { y: 'b' }],
  odd: ['Odd', 3, 5],
  json: ['Json', { a: [1] }, 'j', [null]],
};

/** Values that are wrong for most variables. */
const strange: readonly unknown[] = [
  null,
  2_147_483_648,
  -1e21,
  1.5,
  4,
  '',
  'NOBODY',
  '__proto__',
  true,
  [],
  [1, 'a', null],
  [[[]]],
  {},
  { a: null },
  { a: 1, z: 1 },
  { a: 1, c: [null] },
  { x: 1, y: 'b' },
  { x: null },
  JSON.parse('{"a": 1, "__proto__": 2, "constructor": 3}'),
];

interface Given {
  readonly values: readonly string[];
  readonly needed?: boolean;
}

const needed = (...values: readonly string[]): Given => ({ values, needed: true });
const given = (...values: readonly string[]): Given => ({ values });

/** By argument of the fields that have some: what may stand there. */
const givenArguments: Readonly<Record<string, Readonly<Record<string, Given>>>> = {
  echo: {
    int: given('1', '-5', 'null', '$int', '$intReq', '$intDef'),
    text: given('"x"', '"""\n  block\n  """', '"\\u00e9\\n"', '$text', '$textDef', 'null'),
    list: given('[1, 2]', '3', '[]', '[1, $intReq]', '$list', 'null'),
    nested: given('[[1.5], [2, $float]]', '1', '[null, [$float]]', '$nested'),
    input: given('{a: 1}', '{a: $intReq, b: $text, d: $color}', '{a: 1, e: {x: 1}}', '$input', '$inputReq'),
    color: given('RED', 'BLUE', 'null', '$color'),
    id: given('1', '"a"', '$id'),
    flag: given('true', '$flag', '$flagDef'),
    json: given('{a: 1, b: [$int, "x", {c: $text}], d: RED}', '$json', '"s"', '[[1]]'),
    odd: given('3', '$odd'),
    one: given('{x: 1}', '{y: "b"}', '{x: $intReq}', '$one'),
  },
  need: {
    value: needed('1', '$intReq', '$intDef'),
    more: given('[1, $int]', '[]', '$moreReq'),
    input: given('{a: $intDef}', '$input'),
  },
  only: { value: needed('2', '$intReq', '$intDef') },
  ownCall: { size: given('1', '$int', '$int', 'null') },
  info: { id: given('1', '$id'), text: given('"t"', '$text') },
  user: { id: needed('"1"', '2', '"__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74d1"', '$idReq') },
  createUser: { name: needed('"Ada"', '$textDef'), email: needed('"ada@example.org"', '$textDef') },
};

const conditions = [
  '@skip(if: $flag)',
  '@include(if: $flag)',
  '@include(if: $flagDef)',
  '@skip(if: $flagDef) @include(if: $flag)',
  '@skip(if: false)',
  '@include(if: false)',
];

/** Operations that a schema may be asked, nearly all of them valid. */
export function randomCase(schema: GraphQLSchema): fc.Arbitrary<Case> {
  const known = new Map<GraphQLNamedType, ReturnType<typeof namesOf>>();
  const fieldsOf = (type: GraphQLNamedType) => {
    const found = known.get(type) ?? namesOf(type);
    known.set(type, found);
    return found;
  };
  return fc.gen().map((g) => {
    const pick = <T>(from: readonly T[]): T => from[g(fc.nat, { max: from.length - 1 })] as T;
    const often = (percent: number) => g(fc.integer, { min: 0, max: 99 }) < percent;
    const some = (min: number, max: number) => g(fc.integer, { min, max });
    let aliases = 0;
    let proto = some(0, 100);
    let budget = 0;
    const fragmentTypes: string[] = [];

    const condition = () => (often(15) ? ` ${pick(conditions)}` : '');

    function field(type: GraphQLNamedType, depth: number, fragments: readonly number[]): string {
      const all = fieldsOf(type);
      const usable = depth > 0 && budget > 0 ? all.names : all.leaves;
      if (usable.length === 0 || often(5)) return `__typename${condition()}`;
      const withArguments = usable.filter((name) => Object.hasOwn(givenArguments, name));
      const name = withArguments.length > 0 && often(25) ? pick(withArguments) : pick(usable);
      const given = Object.entries(givenArguments[name] ?? {})
        .filter(([, { needed }]) => often(needed ? 99 : 30))
        .map(([argument, { values }]) => `${argument}: ${pick(values)}`);
      // The same field twice is merged, if nothing sets the two apart.
      const alias = given.length > 0 || often(15) ? `x${aliases++}: ` : proto-- === 0 ? '__proto__: ' : '';
      const list = given.length > 0 ? `(${given.join(', ')})` : '';
      const inner = getNamedType(all.fields[name]?.type);
      const sub = isCompositeType(inner) ? ` ${selection(inner, depth - 1, fragments)}` : '';
      return `${alias}${name}${list}${condition()}${sub}`;
    }

    function selection(
      type: GraphQLNamedType,
      depth: number,
      fragments: readonly number[],
      inline = 2,
    ): string {
      const usable = fragments.filter((index) => overlaps(schema, type.name, fragmentTypes[index] ?? ''));
      const narrower = composites(schema).filter((name) => overlaps(schema, type.name, name));
      const parts = Array.from({ length: budget > 0 ? some(1, 5) : 1 }, () => {
        budget--;
        const kind = some(0, 99);
        if (kind < 15 && usable.length > 0) {
          const spread = `...F${pick(usable)}`;
          return often(30) ? `${spread}${condition()} ${spread}${condition()}` : `${spread}${condition()}`;
        }
        if (inline > 0 && budget > 0 && kind < (isAbstractType(type) ? 80 : 25)) {
          const on = often(80) ? pick(narrower) : undefined;
          const inside = schema.getType(on ?? type.name) ?? type;
          const head = on === undefined ? '...' : `... on ${on}`;
          return `${head}${condition()} ${selection(inside, depth, fragments, inline - 1)}`;
        }
        return field(type, depth, fragments);
      });
      return `{ ${parts.join(' ')} }`;
    }

    const count = some(0, 3);
    const definitions: string[] = [];
    for (let index = 0; index < count; index++) fragmentTypes.push(pick(composites(schema)));
    for (let index = 0; index < count; index++) {
      const on = schema.getType(fragmentTypes[index] ?? '');
      const later = fragmentTypes.map((_, other) => other).filter((other) => other > index);
      budget = 10;
      if (on !== undefined) definitions.push(`fragment F${index} on ${on.name} ${selection(on, 1, later)}`);
    }
    const names = often(70) ? ['A'] : ['A', 'B'];
    const operations = names.map((name) => {
      const mutation = often(12) ? schema.getMutationType() : undefined;
      const root = mutation ?? schema.getQueryType();
      budget = 30;
      const body = root == null ? '' : selection(root, 3, [...fragmentTypes.keys()]);
      return { head: `${mutation == null ? 'query' : 'mutation'} ${name}`, body };
    });
    // All of them declare what any of them uses.
    const text = [...definitions, ...operations.map(({ body }) => body)].join(' ');
    const declared = Object.entries(variables).filter(([name]) => new RegExp(`\\$${name}\\b`).test(text));
    const list = declared.map(([name, [type]]) => `$${name}: ${type}`).join(', ');
    for (const { head, body } of operations) {
      definitions.push(list === '' ? `${head} ${body}` : `${head}(${list}) ${body}`);
    }

    const runs = Array.from({ length: 3 }, () => {
      const values: Record<string, unknown> = {};
      const right = often(70);
      for (const [name, [type, ...good]] of declared) {
        const given = right ? type.endsWith('!') || often(80) : often(80);
        if (given) values[name] = right || often(90) ? pick(good) : pick(strange);
      }
      return { operationName: pick(names), variables: values };
    });
    return { document: definitions.join('\n'), runs };
  });
}

/** The fields of a type, and those of them that need no selection. */
function namesOf(type: GraphQLNamedType) {
  const fields = isObjectType(type) || isInterfaceType(type) ? type.getFields() : {};
  const names = Object.keys(fields);
  return { fields, names, leaves: names.filter((name) => isLeafType(getNamedType(fields[name]?.type))) };
}

function composites(schema: GraphQLSchema): readonly string[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isCompositeType(type) && !type.name.startsWith('__'))
    .map(({ name }) => name);
}

function overlaps(schema: GraphQLSchema, first: string, second: string): boolean {
  const of = (name: string) => {
    const type = schema.getType(name);
    if (type === undefined || !isCompositeType(type)) return [];
    return 'getFields' in type && !('resolveType' in type)
      ? [type.name]
      : schema.getPossibleTypes(type as never).map((possible) => possible.name);
  };
  const others = new Set(of(second));
  return of(first).some((name) => others.has(name));
}
