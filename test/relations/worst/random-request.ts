import type { Random } from '../../support/random.ts';
import { MIB, WIDE_COLUMNS } from './declaration.ts';

/** A request that asks for as much as it may. */
export interface RelationRequest {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PATCH';
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Made when it is sent, since some are large. */
  readonly body?: () => string;
}

const times = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));
const json = (value: () => unknown) => () => JSON.stringify(value());
const lines = (count: number, line: (i: number) => unknown) => () =>
  times(count, (i) => `${JSON.stringify(line(i))}\n`).join('');
const NDJSON = { 'content-type': 'application/x-ndjson' };
const WHOLE = { prefer: 'transaction=all' };
const list = (path: string, parameters: Readonly<Record<string, string>>, headers = {}): RelationRequest => ({
  method: 'GET',
  path,
  parameters: { limit: '1000', ...parameters },
  headers,
});
const post = (path: string, body: () => string, headers = {}): RelationRequest => ({
  method: 'POST',
  path,
  body,
  headers,
});
const where = (tree: unknown) => ({ where: JSON.stringify(tree) });

/** Rows of children of children of the parent with most: without a bound it would look at them for years. */
function crossed(depth: number): unknown {
  return depth === 0 ? { name: 'none' } : { parent: { children: { some: crossed(depth - 1) } } };
}

const INTEGERS = WIDE_COLUMNS.filter((_, i) => i % 9 === 0);
const bytes = (count: number) => Buffer.alloc(count, 7).toString('base64');
const child = (i: number) => ({ name: 'x'.repeat(60), n: i });

/** Requests that are the worst of their kind by what is known of them. */
export const KNOWN: readonly RelationRequest[] = [
  list('/wide', {}),
  list('/wide', { limit: '200' }),
  list('/wide', { sort: 'parent.name', 'parent.name:prefix': 'parent' }),
  list('/wide', { 'c4:contains': '9', sort: '-c4' }, { prefer: 'count=exact' }),
  list('/wide', where({ or: times(400, (i) => ({ c0: i })) })),
  list('/large', {}),
  list('/large', { sort: 'a', fields: 'id' }),
  { method: 'GET', path: '/large/1' },
  list('/children', { 'n:lt': '9000', 'name:contains': 'z' }, { prefer: 'count=exact' }),
  { method: 'GET', path: '/wide', headers: { accept: 'text/csv' } },
  { method: 'GET', path: '/large', headers: { accept: 'application/x-ndjson' } },
  // Faults: as many as possible in few bytes, and names that are compared with all columns.
  post(
    '/strict',
    json(() => times(200, () => ({}))),
  ),
  post(
    '/strict',
    json(() => times(130, (i) => Object.fromEntries(times(150, (k) => [`colum_${k}${i % 10}`, 1])))),
  ),
  post(
    '/strict',
    json(() => ({ ['%'.repeat(900_000)]: 1 })),
  ),
  post(
    '/strict',
    json(() => Object.fromEntries(times(70_000, (i) => [`u${i}`, 1]))),
  ),
  post(
    '/strict',
    lines(5_000, () => ({})),
    NDJSON,
  ),
  post(
    '/strict',
    lines(5_000, (i) => ({ [`${'column_'.repeat(8)}${i}`]: 1 })),
    NDJSON,
  ),
  post(
    '/children',
    json(() => times(1_000, (i) => ({ ...child(i), parent_country: 'zz', parent_code: i }))),
  ),
  post(
    '/children',
    json(() => times(1_000, (i) => ({ ...child(i), id: 1 + i }))),
  ),
  // Rows: many values, large ones, and large defaults.
  post(
    '/wide',
    json(() => times(200, (i) => Object.fromEntries(INTEGERS.map((name) => [name, i])))),
  ),
  post(
    '/large',
    json(() => ({ data: bytes(0.73 * MIB) })),
  ),
  post(
    '/large',
    json(() => ({ doc: times(49_000, () => ({})) })),
  ),
  post(
    '/large',
    json(() => ({ doc: times(19_000, (i) => ({ [`k${i}`]: i })) })),
  ),
  post(
    '/large',
    json(() => ({ doc: times(340_000, () => ({})) })),
  ),
  post(
    '/defaulted',
    json(() => times(4, () => ({}))),
  ),
  post(
    '/defaulted',
    json(() => times(1_000, () => ({}))),
  ),
  post(
    '/children',
    json(() => times(1_000, (i) => ({ ...child(i), id: 100 + i }))),
    {},
  ),
  // Batches.
  post(
    '/_batch',
    json(() => ({
      writes: times(100, (i) => ({ method: 'PATCH', path: `/large/${1 + i}`, body: { parent_code: 1 } })),
    })),
  ),
  post(
    '/_batch',
    json(() => ({
      writes: times(4, () => ({ method: 'POST', path: '/large', body: { data: bytes(0.72 * MIB) } })),
    })),
  ),
  post(
    '/_batch',
    json(() => ({ writes: times(100, () => ({ method: 'POST', path: '/defaulted', body: {} })) })),
  ),
  post(
    '/_batch',
    json(() => ({
      writes: times(100, (i) => ({
        method: 'POST',
        path: '/wide',
        body:
          i === 0
            ? {}
            : Object.fromEntries(INTEGERS.map((name) => [name, { $result: i - 1, pointer: `/${name}` }])),
      })),
    })),
  ),
  // Imports.
  post('/children', lines(20_000, child), { ...NDJSON, ...WHOLE }),
  post(
    '/children',
    lines(9_000, (i) => ({ ...child(i), id: 1 + i })),
    { ...NDJSON, ...WHOLE },
  ),
  post(
    '/strict',
    lines(2_000, () => ({})),
    { ...NDJSON, ...WHOLE },
  ),
  post(
    '/defaulted',
    lines(100, () => ({})),
    { ...NDJSON, ...WHOLE },
  ),
  post(
    '/defaulted',
    lines(8, () => ({})),
    NDJSON,
  ),
  // Removals of many rows that cascade, and of large ones, whose events have the rows.
  {
    method: 'DELETE',
    path: '/children',
    parameters: { 'n:gte': '2500', 'n:lt': '10500' },
    headers: { prefer: 'max-affected=10000' },
  },
  {
    method: 'DELETE',
    path: '/large',
    parameters: { 'id:gt': '6' },
    headers: { prefer: 'max-affected=10000' },
  },
];

/** Lists that would look at rows for minutes, and are ended; each takes seconds. */
export const LONG: readonly RelationRequest[] = [
  list('/large', where({ or: times(300, (i) => ({ a: { contains: `q${i}` } })) })),
  list('/children', where({ parent: { children: { every: { n: 0 } } }, n: 1 })),
  list('/parents', where({ children: { some: crossed(2) } })),
];

/** A random request for rows, filtered, sorted and shown in every way. */
export function randomRequest(random: Random): RelationRequest {
  const name = random.pick(['wide', 'large', 'children', 'parents'] as const);
  const accept = random.pick([
    'application/json',
    'application/json',
    'application/json',
    'text/csv',
    'application/x-ndjson',
  ]);
  const parameters: Record<string, string> = {};
  if (random.chance(0.8)) parameters.where = JSON.stringify(randomTree(random, name, 0));
  if (accept === 'application/json') {
    parameters.limit = random.pick(['1000', '999', '200', '1']);
    if (random.chance(0.5)) parameters.sort = random.pick(SORTS[name]);
  }
  const prefer = random.chance(0.3) ? { prefer: 'count=exact' } : {};
  return { method: 'GET', path: `/${name}`, parameters, headers: { accept, ...prefer } };
}

/** The same request with some of its parameters changed, gone or new. */
export function changedRequest(request: RelationRequest, random: Random): RelationRequest {
  if (request.method !== 'GET') return request;
  const fresh = randomRequest(random);
  if (fresh.path !== request.path) return { ...request, headers: fresh.headers ?? {} };
  const kept = Object.entries(request.parameters ?? {}).filter(() => random.chance(0.7));
  return { ...request, parameters: { ...fresh.parameters, ...Object.fromEntries(kept) } };
}

const SORTS = {
  wide: ['c0', '-c1', 'parent.name', 'c2,-c3', 'parent.name,-c4', 'c7'],
  large: ['a', '-id', 'parent.name', 'id'],
  children: ['n', '-n', 'parent.name', 'name', 'parent_country,parent_code'],
  parents: ['name', '-name,code', 'code'],
} as const;

type Name = keyof typeof SORTS;

function randomTree(random: Random, name: Name, depth: number): unknown {
  const inner = () => randomTree(random, name, depth + 1);
  if (depth < 3 && random.chance(0.4)) {
    const count = random.pick([2, 10, 40]);
    return { [random.pick(['and', 'or'])]: times(depth === 0 ? count : 2, inner) };
  }
  if (depth < 4 && random.chance(0.1)) return { not: inner() };
  if (depth < 5 && random.chance(0.4)) return crossing(random, name, depth);
  return leaf(random, name);
}

function crossing(random: Random, name: Name, depth: number): unknown {
  if (name !== 'parents') return { parent: randomTree(random, 'parents', depth + 1) };
  const other = random.pick(['wide', 'large', 'children'] as const);
  return { [other]: { [random.pick(['some', 'none', 'every'])]: randomTree(random, other, depth + 1) } };
}

function leaf(random: Random, name: Name): unknown {
  const numbers = { in: times(random.pick([1, 10, 100]), () => random.below(20_000)) };
  const text = {
    [random.pick(['prefix', 'contains'])]: random.pick(['a', 'parent 1', 'zzz', 'text', 'y'.repeat(60)]),
  };
  switch (name) {
    case 'wide':
      return {
        ...(random.chance(0.5) ? { c0: numbers } : { c4: text }),
        ...(random.chance(0.2) ? { c1: null } : {}),
      };
    case 'large':
      return { a: text };
    case 'children':
      return random.chance(0.5) ? { n: numbers } : { name: text };
    case 'parents':
      return random.chance(0.5) ? { name: text } : { code: numbers };
  }
}
