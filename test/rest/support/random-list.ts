import type { Random } from '../../support/random.ts';

/** A request for a list: its path, and what stands in its query and head. */
export interface ListRequest {
  readonly door: 'rest' | 'management' | 'graphql';
  readonly path: string;
  readonly parameters: readonly (readonly [name: string, value: string])[];
  readonly headers: Readonly<Record<string, string>>;
}

/** Texts that many users have, that few have and that none has; `wide` characters take more bytes than others. */
export const TEXTS = [
  '\u{20ac}'.repeat(480),
  '\u0001'.repeat(480),
  'x'.repeat(480),
  'name',
  'a',
  'zzz',
] as const;

/** Requests that are the worst of their kind by what is known of them. */
export const KNOWN: readonly ListRequest[] = [
  rest([
    ['sort', '-email,name'],
    ['limit', '1000'],
  ]),
  rest([
    ['sort', 'name,-email'],
    ['limit', '1000'],
  ]),
  rest([['limit', '1000']]),
  rest([]),
  rest([], { accept: 'text/csv' }),
  rest([], { accept: 'application/x-ndjson' }),
  rest([['q', 'zzz']], { prefer: 'count=exact' }),
  rest(
    [
      ['name:contains', '\u{20ac}'],
      ['sort', '-email'],
      ['limit', '1000'],
    ],
    { prefer: 'count=exact' },
  ),
  { door: 'graphql', path: '/graphql', parameters: [['query', '{users{id name email}}']], headers: {} },
  management('console/api/users', [
    ['sort', '-email,name'],
    ['limit', '1000'],
  ]),
  management('console/api/deliveries', [['limit', '1000']]),
  management('console/api/deliveries', [
    ['text', 'zzz'],
    ['limit', '1000'],
  ]),
];

function rest(
  parameters: ListRequest['parameters'],
  headers: Readonly<Record<string, string>> = {},
): ListRequest {
  return { door: 'rest', path: '/users', parameters, headers };
}

function management(name: string, parameters: ListRequest['parameters']): ListRequest {
  return { door: 'management', path: `/actuator/${name}`, parameters, headers: {} };
}

/** A random request for a list of users or deliveries that asks for as much as it can. */
export function randomList(random: Random): ListRequest {
  if (random.chance(0.6)) return rest(userParameters(random), headersOf(random));
  return random.pick([
    () => management('console/api/users', userParameters(random)),
    () => management('console/api/deliveries', deliveryParameters(random)),
    () => management('deliveries', deliveryParameters(random)),
    () => management(random.pick(['auditevents', 'httpexchanges', 'logtail', 'requests']), []),
  ])();
}

/** The same request with one of its parameters changed, gone or new. */
export function changedList(request: ListRequest, random: Random): ListRequest {
  const fresh = randomList(random);
  if (fresh.path !== request.path)
    return { ...request, headers: fresh.door === request.door ? fresh.headers : {} };
  const kept = request.parameters.filter(() => random.chance(0.7));
  const names = new Set(kept.map(([name]) => name));
  return { ...request, parameters: [...kept, ...fresh.parameters.filter(([name]) => !names.has(name))] };
}

function headersOf(random: Random): Readonly<Record<string, string>> {
  return {
    accept: random.pick(['application/json', 'application/json', 'text/csv', 'application/x-ndjson']),
    ...(random.chance(0.3) ? { prefer: 'count=exact' } : {}),
  };
}

function userParameters(random: Random): ListRequest['parameters'] {
  const one = (chance: number, name: string, value: () => string): (readonly [string, string])[] =>
    random.chance(chance) ? [[name, value()]] : [];
  const part = () => {
    const text = random.pick(TEXTS);
    return text.slice(0, random.pick([1, 2, 3, text.length]));
  };
  return [
    ...one(0.8, 'limit', () => random.pick(['1000', '999', '101', '100', '1'])),
    ...one(0.6, 'sort', () =>
      random.pick(['name', '-email', '-email,name', 'name,-email', 'email,name,-id', '-id', 'id']),
    ),
    ...one(0.2, 'fields', () => random.pick(['id', 'name', 'id,email'])),
    ...one(0.3, 'q', part),
    ...one(0.2, 'name:contains', part),
    ...one(0.2, 'name:prefix', part),
    ...one(0.2, 'email:contains', part),
    ...one(0.1, 'email:prefix', () => '1'),
    ...one(0.1, 'name', () => random.pick(TEXTS)),
  ];
}

function deliveryParameters(random: Random): ListRequest['parameters'] {
  const one = (chance: number, name: string, value: () => string): (readonly [string, string])[] =>
    random.chance(chance) ? [[name, value()]] : [];
  return [
    ...one(0.8, 'limit', () => random.pick(['1000', '500', '100'])),
    ...one(0.3, 'status', () => random.pick(['dead', 'done', 'pending', 'unhandled'])),
    ...one(0.2, 'event', () => random.pick(['filled', 'none'])),
    ...one(0.4, 'text', () => random.pick(['zzz', 'x'.repeat(1_000), 'number'])),
    ...one(0.2, 'since', () => '2023-01-01'),
    ...one(0.2, 'before', () => String(1 + random.below(20_000))),
  ];
}
