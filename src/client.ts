import { type ChangeEvent, type FollowOptions, follow } from './client-events.ts';
import { type SendingClient, sendingClient } from './client-sending.ts';

export type { ChangeEvent } from './client-events.ts';

/** One value of a key, or its parts in the order of the declaration. */
type Key = Part | readonly Part[];
type Part = string | number | boolean;

/** The types of rows that other rows embed. */
interface EmbeddedTypes {
  readonly row: object;
  readonly where: object;
  /** By name: the types of one row, of one row or null, or of an array of rows. */
  readonly embeds: object;
}

/** The types of a relation, as `portico types` writes them. */
export interface RelationTypes extends EmbeddedTypes {
  readonly create: object;
  /** A new row with rows of other relations within it. */
  readonly nested: object;
  readonly put: object;
  readonly patch: object;
  readonly key: Key;
}

type Members = Readonly<Record<string, unknown>>;

/** The types of a relation of which nothing is known. */
type Untyped = { readonly [K in keyof RelationTypes]: K extends 'key' ? Key : Members };

type Column<M extends EmbeddedTypes> = keyof M['row'] & string;

/** Which columns a row shows, and which rows of other relations within it. Without `fields` it shows all columns. */
interface Shown<M extends EmbeddedTypes> {
  readonly fields?: readonly Column<M>[];
  /** `true` embeds rows with all their columns. */
  readonly embed?: { readonly [N in keyof M['embeds']]?: true | Embed<TypesOf<M['embeds'][N]>> };
}

interface Embed<M extends EmbeddedTypes> extends Shown<M> {
  readonly where?: M['where'];
  /** Of an array only. */
  readonly sort?: Sort<M> | readonly Sort<M>[];
  readonly limit?: number;
}

type TypesOf<E> =
  NonNullable<E extends readonly (infer M)[] ? M : E> extends infer M extends EmbeddedTypes ? M : Untyped;

/** An object with an error at each member that is not known. */
type Known<Q, All> = Q & { readonly [N in Exclude<keyof Q, keyof All>]: never };

/** A column, also over references; `-` in front sorts descending. */
type Sort<M extends EmbeddedTypes> = Column<M> | `-${Column<M>}` | `${string}.${string}`;

/** A row as it is shown. */
type RowOf<M extends EmbeddedTypes, Q> = (Q extends { readonly fields: readonly (infer F)[] }
  ? Pick<M['row'], F & keyof M['row']>
  : M['row']) &
  (Q extends { readonly embed: infer E }
    ? { readonly [N in keyof E & keyof M['embeds']]: EmbeddedOf<M['embeds'][N], E[N]> }
    : unknown);

type EmbeddedOf<E, Q> = unknown extends E
  ? unknown
  : [E] extends [readonly (infer M extends EmbeddedTypes)[]]
    ? readonly RowOf<M, Q>[]
    : RowOf<TypesOf<E>, Q> | (null extends E ? null : Q extends { readonly where: object } ? null : never);

interface RowQuery<M extends EmbeddedTypes> extends Shown<M> {
  readonly signal?: AbortSignal;
}

interface ListQuery<M extends EmbeddedTypes> extends Embed<M> {
  /** Whether to count all rows that match. */
  readonly count?: boolean;
  readonly signal?: AbortSignal;
}

/** A page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** The number of rows of all pages, if `count` asked for it. */
  readonly total: number | undefined;
  readonly hasNext: boolean;
  /** The next page; undefined after the last one. */
  next(): Promise<Page<Row> | undefined>;
}

interface WriteOptions {
  /** The service does a write with the same key once. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

interface Condition {
  /** The row as this client read it, or its `ETag`: the write fails if it has changed since. */
  readonly ifMatch?: string | object;
}

interface ChangeOptions extends Condition {
  readonly signal?: AbortSignal;
}

interface UpsertRule<M extends EmbeddedTypes> {
  /** The columns of a unique, or of the key. */
  readonly on: readonly Column<M>[];
  /** Whether a row that is there stays as it is. */
  readonly ignore?: boolean;
}

/** The rows of a relation. Writes return the row as it is stored, and undefined if the caller may not read it. */
interface RelationClient<N, M extends RelationTypes> {
  list<const Q extends ListQuery<M> = object>(query?: Known<Q, ListQuery<M>>): Promise<Page<RowOf<M, Q>>>;
  /** Rejects with the code NOT_FOUND for an unknown key. */
  get<const Q extends RowQuery<M> = object>(
    key: M['key'],
    query?: Known<Q, RowQuery<M>>,
  ): Promise<RowOf<M, Q>>;
  create(row: M['nested'], options?: WriteOptions): Promise<M['row']>;
  /** Stores all rows or none. */
  createMany(rows: readonly M['nested'][], options?: WriteOptions): Promise<readonly M['row'][]>;
  update(key: M['key'], patch: M['patch'], options?: ChangeOptions): Promise<M['row']>;
  /** Stores the whole row. Creates it if clients give the key. */
  put(key: M['key'], row: M['put'], options?: ChangeOptions): Promise<M['row']>;
  remove(key: M['key'], options?: ChangeOptions): Promise<void>;
  /** Creates the row, or changes the one with the same values in the columns of `on`. */
  upsert(row: M['create'], options: UpsertRule<M> & WriteOptions): Promise<M['row']>;
  /** Changes as they are committed. Reconnects without a gap after the first connection. */
  follow(options?: FollowOptions<M['where']>): AsyncIterableIterator<ChangeEvent<N, M['row']>, undefined>;
}

/** A write of a batch. */
type Write<R extends TypesByName<R>> = {
  readonly [N in keyof R]:
    | { readonly create: N; readonly row: R[N]['create'] }
    | ({ readonly upsert: N; readonly row: R[N]['create'] } & UpsertRule<R[N]>)
    | ({ readonly update: N; readonly key: R[N]['key']; readonly patch: R[N]['patch'] } & Condition)
    | ({ readonly put: N; readonly key: R[N]['key']; readonly row: R[N]['put'] } & Condition)
    | ({ readonly remove: N; readonly key: R[N]['key'] } & Condition);
}[keyof R];

interface WriteResult {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The row as it is stored; null if it is removed, or the caller may not read it. */
  readonly body: unknown;
}

type TypesByName<R> = { readonly [N in keyof R]: RelationTypes };

/** The relations of a service by name, and its `events` and `webhooks` unless relations have these names. */
export type Client<R extends TypesByName<R>> = {
  readonly [N in Exclude<keyof R, keyof Shared<R>>]: RelationClient<N, R[N]>;
} & Shared<R> &
  (string extends keyof R ? SendingClient : Omit<SendingClient, keyof R>);

interface Shared<R extends TypesByName<R>> {
  /** The rows of a relation, also of one that has the name of another member. */
  relation<N extends keyof R>(name: N): RelationClient<N, R[N]>;
  /** Does up to 100 writes in one transaction. */
  batch(writes: readonly Write<R>[], options?: WriteOptions): Promise<readonly WriteResult[]>;
  /** The changes of several relations in one order. */
  follow<N extends keyof R>(
    relations: readonly N[],
    options?: FollowOptions<Members>,
  ): AsyncIterableIterator<{ readonly [K in N]: ChangeEvent<K, R[K]['row']> }[N], undefined>;
}

export interface ClientOptions {
  /** Sent as `Authorization: Bearer`; a function is asked before each request. */
  readonly token?: string | (() => string | Promise<string>);
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: that of the browser or of Node. */
  readonly fetch?: typeof fetch;
}

interface Fault {
  readonly detail: string;
  readonly pointer?: string;
  readonly parameter?: string;
}

/** A refusal of the service. */
export class PorticoError extends Error {
  override readonly name = 'PorticoError';
  readonly status: number;
  /** The code, such as `TAKEN` or `EVENTS_GONE`; `HTTP_502` for a reply that is not of Portico. */
  readonly code: string;
  /** The faults, each with the place in the body (`pointer`) or the parameter. */
  readonly errors: readonly Fault[];
  /** After how many seconds to try again. */
  readonly retryAfter: number | undefined;

  constructor({ status, headers }: Response, body: Members) {
    super(String(body.detail ?? body.message ?? `The service replied with ${status}`));
    this.status = status;
    this.code = String(body.code ?? headers.get('x-error-code') ?? `HTTP_${status}`);
    this.errors = Array.isArray(body.errors) ? body.errors : [];
    const after = Number(headers.get('retry-after') ?? 'none');
    this.retryAfter = Number.isNaN(after) ? undefined : after;
  }
}

/** In a batch: the value of a column of the row of an earlier write, counted from 0. It goes where any value does. */
export function result(write: number, column: string): never {
  return { $result: write, pointer: `/${column}` } as never;
}

/** A client of the relations of a service at the address of its REST door. */
export function client<R extends TypesByName<R> = Record<string, Untyped>>(
  url: string,
  options: ClientOptions = {},
): Client<R> {
  const door = new Door(url, options);
  // A relation may have the name, and then has these methods too.
  const sending: Readonly<Record<string, object>> = { ...sendingClient(door) };
  const relations = new Map<string, unknown>();
  const relation = (name: string) => {
    const found = relations.get(name) ?? { ...relationOf(door, name), ...sending[name] };
    relations.set(name, found);
    return found;
  };
  const shared: Members = {
    relation,
    batch: (writes: readonly Members[], how?: WriteOptions) => batch(door, writes, how),
    follow: (names: readonly string[], how?: FollowOptions<Members>) =>
      followed(door, '/_changes', { relation: names.join() }, how),
  };
  return new Proxy(shared, {
    get(_, name) {
      // `await` asks every value for `then`.
      if (typeof name === 'symbol' || name === 'then') return undefined;
      return Object.hasOwn(shared, name) ? shared[name] : relation(name);
    },
  }) as unknown as Client<R>;
}

/** The tags of the rows that were read or written. */
const tags = new WeakMap<object, string>();

/** What a request has besides its path. */
interface Sent {
  readonly query?: URLSearchParams | undefined;
  readonly body?: unknown;
  /** The body instead, as JSON on lines. */
  readonly lines?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly cache?: 'no-store';
}

/** Sends requests. */
class Door {
  readonly #base: string;
  readonly #options: ClientOptions;

  constructor(url: string, options: ClientOptions) {
    this.#base = url.replace(/\/+$/, '');
    this.#options = options;
  }

  /** Rejects with PorticoError for a refusal. */
  async send(
    method: string,
    path: string,
    { query, body, lines, headers = {}, signal, cache }: Sent = {},
  ): Promise<Response> {
    const { token, headers: always, fetch: send = fetch } = this.#options;
    const found = typeof token === 'function' ? await token() : token;
    const search = query === undefined || query.size === 0 ? '' : `?${query}`;
    const response = await send(`${this.#base}${path}${search}`, {
      method,
      headers: {
        accept: 'application/json, application/problem+json',
        ...(found !== undefined && { authorization: `Bearer ${found}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(lines !== undefined && { 'content-type': 'application/x-ndjson' }),
        ...always,
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(lines !== undefined && { body: lines.join('\n') }),
      ...(signal !== undefined && { signal }),
      ...(cache !== undefined && { cache }),
    });
    if (response.ok) return response;
    const text = await response.text();
    let problem: unknown;
    try {
      problem = JSON.parse(text);
    } catch {
      // A proxy may reply with a page.
    }
    throw new PorticoError(response, Object(problem) as Members);
  }

  /** The JSON of a reply; undefined if it has none. */
  async json(method: string, path: string, sent?: Sent): Promise<unknown> {
    const response = await this.send(method, path, sent);
    const text = await response.text();
    const value: unknown = text === '' ? undefined : JSON.parse(text);
    const tag = response.headers.get('etag');
    // The tag of a row with others within it is not that of the row alone.
    const isRow = typeof value === 'object' && value !== null && !sent?.query?.get('fields')?.includes('(');
    if (isRow && tag !== null) tags.set(value, tag);
    return value;
  }
}

function relationOf(door: Door, name: string): RelationClient<string, Untyped> {
  const path = `/${encodeURIComponent(name)}`;
  const at = (key: Key) => `${path}/${segmentOf(key)}`;
  const write = async (
    method: string,
    to: string,
    body: unknown,
    options: WriteOptions & ChangeOptions = {},
    more: Sent = {},
  ) =>
    (await door.json(method, to, {
      ...more,
      body,
      signal: options.signal,
      headers: { ...headersOf(options), ...more.headers },
    })) as never;
  return {
    async list(query) {
      return pageOf(door, path, queryOf(query), query) as never;
    },
    async get(key, query) {
      return (await door.json('GET', at(key), { query: queryOf(query), signal: query?.signal })) as never;
    },
    create: (row, options) => write('POST', path, row, options),
    createMany: (rows, options) => write('POST', path, rows, options),
    update: (key, patch, options) => write('PATCH', at(key), patch, options),
    put: (key, row, options) => write('PUT', at(key), row, options),
    remove: (key, options) => write('DELETE', at(key), undefined, options),
    upsert: (row, options) =>
      write('POST', path, row, options, {
        query: new URLSearchParams({ on: options.on.join() }),
        headers: resolution(options),
      }),
    follow: (options) => followed(door, path, {}, options) as never,
  };
}

function resolution({ ignore = false }: { readonly ignore?: boolean }): Readonly<Record<string, string>> {
  return { prefer: `resolution=${ignore ? 'ignore' : 'merge'}` };
}

function headersOf({
  idempotencyKey,
  ifMatch,
}: WriteOptions & ChangeOptions): Readonly<Record<string, string>> {
  const tag = typeof ifMatch === 'object' ? tags.get(ifMatch) : ifMatch;
  if (ifMatch !== undefined && tag === undefined)
    throw new TypeError(
      'ifMatch takes an ETag, or a row from get or a write, without rows of others within it',
    );
  return {
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    ...(tag !== undefined && { 'if-match': tag }),
  };
}

/** The last segment of a path; a part may be a value of an earlier write of a batch. */
function segmentOf(key: unknown): string {
  const parts: readonly unknown[] = Array.isArray(key) ? key : [key];
  return parts
    .map((part) => {
      const { $result, pointer } = Object(part) as { readonly $result?: number; readonly pointer?: string };
      return $result === undefined ? encodeURIComponent(String(part)) : `{$${$result}${pointer}}`;
    })
    .join();
}

/** The parameters of a list or a row. */
function queryOf({ where, sort, limit, ...shown }: ListQuery<Untyped> = {}): URLSearchParams {
  const query = new URLSearchParams();
  if (where !== undefined) query.set('where', JSON.stringify(where));
  if (sort !== undefined) query.set('sort', [sort].flat().join());
  if (shown.fields !== undefined || shown.embed !== undefined)
    query.set('fields', fieldsOf(shown, '', query));
  if (limit !== undefined) query.set('limit', String(limit));
  return query;
}

/** The value of `fields`; adds the parameters of embedded rows, whose names begin with the path. */
function fieldsOf(
  { fields = ['*'], embed = {} }: Shown<Untyped>,
  path: string,
  query: URLSearchParams,
): string {
  const embedded = Object.entries(embed).map(([name, given]) => {
    const { where, sort, limit, ...shown }: Embed<Untyped> =
      given === true || given === undefined ? {} : given;
    const at = `${path}${name}.`;
    const inside = fieldsOf(shown, at, query);
    if (where !== undefined) query.set(`embed.${at}where`, JSON.stringify(where));
    if (sort !== undefined) query.set(`embed.${at}sort`, [sort].flat().join());
    if (limit !== undefined) query.set(`embed.${at}limit`, String(limit));
    return `${name}(${inside})`;
  });
  return [...fields, ...embedded].join();
}

async function pageOf(
  door: Door,
  path: string,
  query: URLSearchParams,
  how: ListQuery<Untyped> = {},
): Promise<Page<unknown>> {
  const headers: Sent['headers'] = how.count === true ? { prefer: 'count=exact' } : {};
  const response = await door.send('GET', path, { query, headers, signal: how.signal });
  const rows = (await response.json()) as readonly unknown[];
  const total = response.headers.get('x-total-count');
  // Only its parameters: a proxy may show other paths than the service knows.
  const [, next] = /<[^>?]*\?([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
  return {
    rows,
    total: total === null ? undefined : Number(total),
    hasNext: next !== undefined,
    async next() {
      return next === undefined ? undefined : pageOf(door, path, new URLSearchParams(next), how);
    },
  };
}

async function batch(
  door: Door,
  writes: readonly Members[],
  options: WriteOptions = {},
): Promise<readonly WriteResult[]> {
  const sent = writes.map((write) => {
    const [method, name] = Object.entries(METHODS)
      .map(([kind, each]) => [each, write[kind]] as const)
      .find(([, relation]) => relation !== undefined) ?? ['', ''];
    const on = Array.isArray(write.on) ? `?on=${write.on.map(encodeURIComponent).join()}` : '';
    const at = 'key' in write ? `/${segmentOf(write.key)}` : '';
    const headers = { ...headersOf(write), ...(on !== '' && resolution(write)) };
    return { method, path: `/${name}${at}${on}`, headers, body: write.row ?? write.patch };
  });
  const { signal } = options;
  const reply = await door.json('POST', '/_batch', {
    body: { writes: sent },
    headers: headersOf(options),
    signal,
  });
  const { results } = reply as { readonly results: readonly WriteResult[] };
  for (const { headers, body } of results) if (body !== null) tags.set(Object(body), headers.etag ?? '');
  return results;
}

const METHODS = { create: 'POST', upsert: 'POST', update: 'PATCH', put: 'PUT', remove: 'DELETE' } as const;

function followed(
  door: Door,
  path: string,
  query: Readonly<Record<string, string>>,
  options: FollowOptions<Members> = {},
) {
  const { where, signal } = options;
  const all = new URLSearchParams(query);
  if (where !== undefined) all.set('where', JSON.stringify(where));
  // A browser must not take the reply to a list for the stream.
  return follow(
    (headers) => door.send('GET', path, { query: all, headers, signal, cache: 'no-store' }),
    options,
  );
}
