interface Written {
  /** Its operation has the name A. */
  readonly document: string;
  readonly variables: readonly Record<string, unknown>[];
}

const booleans = [true, false];
const manyConditions = ['a', 'b', 'c', 'd', 'e', 'f'];

/** Combinations of `names`, each true and false. */
function combinations(names: readonly string[]): readonly Record<string, boolean>[] {
  const [first, ...rest] = names;
  if (first === undefined) return [{}];
  return combinations(rest).flatMap((others) => booleans.map((value) => ({ ...others, [first]: value })));
}

const chain = Array.from({ length: 60 }, (_, i) => `fragment F${i} on Alpha { ...F${i + 1} ...F${i + 1} }`);

/** What random documents come upon too seldom. */
export const cases: Readonly<Record<string, Written>> = {
  'null for a variable that has a default, where null is not allowed': {
    document:
      'query A($int: Int = 3) { only(value: $int) need(value: $int) other: need(value: 1, more: [$int]) }',
    variables: [{}, { int: null }, { int: 1 }, { int: null }],
  },
  'an argument whose variable is missing has its default': {
    document: 'query A($int: Int) { good_9_0 { ownCall(size: $int) } }',
    variables: [{}, { int: 5 }, { int: null }, {}],
  },
  'arguments from variables that stay as they are, and from others': {
    document: `query A($text: String, $id: ID, $flag: Boolean) { info(id: $id, text: $text)
      echo(text: $text, id: $id, flag: $flag, int: 1, color: RED) }`,
    variables: [
      { text: 'a', id: 'b', flag: true },
      { text: '', id: 12, flag: false },
      { text: null, id: null, flag: null },
      {},
      { text: 1, id: 1.5, flag: 'true' },
      { text: 'a', id: 'b', flag: false },
      JSON.parse('{"text": "a", "__proto__": {"id": "inherited"}}'),
    ],
  },
  'a field that is merged in one place and not in another': {
    document: `query A { a: good_9_0 { ...F } b: good_9_0 { ...F ownChild { ownNumber } } c: good_9_0 { ...F } }
      fragment F on Alpha { ownChild { ownText } }`,
    variables: [{}],
  },
  'a fragment that is spread twice': {
    document: 'query A { good_9_0 { ...F info ...F } } fragment F on Alpha { info a: throws_0_0 }',
    variables: [{}],
  },
  'fragments that double at each step': {
    document: `query A { good_9_0 { ...F0 } } ${chain.join(' ')} fragment F60 on Alpha { ownText }`,
    variables: [{}],
  },
  'more conditions than there are plans': {
    document: `query A(${manyConditions.map((name) => `$${name}: Boolean!`).join(', ')}) {
      ${manyConditions.map((name) => `${name}: __typename @include(if: $${name})`).join(' ')} }`,
    variables: [...combinations(manyConditions), ...combinations(manyConditions)],
  },
  'a condition that is null': {
    document: `query A($flag: Boolean = true) { good_9_0 { ownText @skip(if: $flag) } 
      good_9_1 { ownText @include(if: $flag) } }`,
    variables: [{ flag: null }, {}, { flag: false }, { flag: null }],
  },
  'a condition on the root that is null': {
    document: 'query A($flag: Boolean = true) { ownText @skip(if: $flag) }',
    variables: [{ flag: null }, {}, { flag: null }],
  },
  'names that every object has': {
    document: `query A { __proto__: good_9_0 { constructor: ownText __proto__: ownNumber } toString: __typename
      ...constructor } fragment constructor on Query { valueOf: __typename ...__proto__ }
      fragment __proto__ on Query { hasOwnProperty: __typename }`,
    variables: [{}],
  },
  'texts that a compiler could take for code': {
    document: `query A { a: echo(text: "__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74dprocess.abort()")
      b: echo(text: "\\"\\\\u0027);process.abort();//\${process.abort()}\`") c: info(id: "__MAGIC_NAN__57f286b9") }`,
    variables: [{}],
  },
  'items that wait behind one that fails': {
    document: 'query A { wrongThenLater_4_3 other: wrongThenLater_10_3 { ownText } wrongThenLater_4_4 }',
    variables: [{}],
  },
  'types that are not possible': {
    document: `query A { wrong_12_0 { ownText } wrong_13_0 { ownText } wrong_14_0 { ownText } wrong_15_0 { ownText }
      wrong_16_0 { __typename } wrong_10_0 { ownText } wrong_11_0 { ownText } wrong_9_0 { ownText } 
      laterWrong_12_0 { ownText } withWrong_12_2 { ownText } }`,
    variables: [{}],
  },
  'a mutation whose first step is slow': {
    document:
      'mutation A { a: later_0 b: throws_0 c: laterThrows_0 d: good_2 { info } e: laterNone_1 f: good_0 }',
    variables: [{}],
  },
  'a branch that is given up before it has ended': {
    document: 'query A { later_9_0 { later_9_0 { info later_9_0 { info } } } laterNone_0_1 }',
    variables: [{}],
  },
  introspection: {
    document: `query A { __schema { types { name kind fields { name args { name defaultValue } } enumValues { name } } }
      __type(name: "In") { inputFields { name type { name ofType { name } } defaultValue } } }`,
    variables: [{}],
  },
};
