import {
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { refuseCrossSite } from '../../access/cors.ts';
import { type Guards, guarded } from '../../access/guarded.ts';
import { type RowAccess, requireAny, viewOf } from '../../access/row-access.ts';
import { StatementTimeError } from '../../core/errors.ts';
import { preferences } from '../../core/negotiation.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { codecOf } from '../../relations/codecs.ts';
import { assigned, sizeOfRow } from '../../relations/given-values.ts';
import { type ColumnType, isComputed, type Operation, type Value } from '../../relations/relation.ts';
import { conflictFaults, conflictStatus, toldFaults } from '../../relations/rows/faults.ts';
import {
  type RowFault,
  RowFormat,
  type RowStore,
  type RowStores,
  RowsRefusedError,
  type RowValues,
} from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowWrite,
  type WriteOutcome,
  WriteRefusedError,
} from '../../relations/rows/writes.ts';
import type { RowView } from '../../relations/rules/views.ts';
import { createKey, json, keptOf, rowValidators } from '../messages.ts';
import { tooLong } from '../relation-lists.ts';
import {
  CHANGED_MEANWHILE,
  invalidRow,
  MAX_ROW_BYTES,
  parsed,
  RowRequests,
  tooLarge,
  tooManyResults,
  type WriteHead,
  withEarlier,
} from './row-requests.ts';

interface BatchOptions extends Guards, RowAccess {
  /** The prefix of the paths that clients see. */
  readonly prefix: string;
  readonly requireIfMatch: boolean;
  /** How long the outcome of a batch with a key is kept, in hours. */
  readonly idempotencyHours: number;
}

/** Largest body of a batch in bytes, and its maximum number of writes. */
const LIMITS = { bytes: 4 * 1024 * 1024, writes: 100 } as const;

/** POST /_batch: writes to rows of any relations in one transaction. */
export function batchEndpoint(stores: RowStores, options: BatchOptions): Endpoint {
  const relations = new Map(
    Array.from(stores.values(), ({ relation }) => {
      const requests = new RowRequests(new RowFormat(relation), options.requireIfMatch);
      return [relation.name, requests] as const;
    }),
  );
  const [first] = stores.values();
  if (first === undefined) throw new Error('A batch needs relations');
  return guarded(
    {
      bodyLimit: LIMITS.bytes,
      authorize: (ctx) => refuseCrossSite(ctx, options.cors),
      async handle(ctx) {
        const batch = new Batch(relations, options, ctx);
        const { transactions } = first.as(batch.view, ctx.caller);
        const writes = writesOf(parseJsonBody(ctx.body, true));
        await parsed(ctx);
        for (const each of writes) batch.add(each);
        const key = createKey(ctx, options.idempotencyHours);
        try {
          if (batch.writes.length === 0) return await batch.reply([], stores);
          if (key === undefined) return await batch.reply(await transactions.write(batch.writes), stores);
          const once = await transactions.writeOnce(batch.writes, { ...key, key: `/_batch ${key.key}` });
          return await batch.reply(keptOf(once).outcomes, stores);
        } catch (error) {
          throw batch.refusal(error);
        }
      },
    },
    options,
    (policy, ctx) => (options.rules === undefined ? policy.authorizeAny(ctx) : policy.identify(ctx)),
  );
}

/** The writes of a body. Throws HttpProblem. */
function writesOf(body: unknown): readonly unknown[] {
  const { writes, ...others } = Object(body) as { readonly writes?: unknown };
  const [other] = Object.keys(others);
  if (!Array.isArray(writes) || other !== undefined) {
    throw invalidBatch('A batch is an object with the array "writes"', '#');
  }
  if (writes.length <= LIMITS.writes) return writes;
  const message = `A batch takes at most ${LIMITS.writes} writes (batch writes); send the others in another one`;
  throw new HttpProblem(400, 'LIMIT_EXCEEDED', message);
}

function invalidBatch(detail: string, pointer: string): HttpProblem {
  return new HttpProblem(400, 'INVALID_BATCH', detail, { reasons: [{ detail, pointer }] });
}

/** A write of a batch as its client sent it. */
interface SentWrite {
  readonly method: string;
  readonly path: string;
  readonly headers: WriteHead['headers'];
  readonly body: unknown;
}

/** A relation, and perhaps a key, of which a part may be a value of an earlier write. */
const PATH = /^\/([^/]+)(?:\/((?:\{[^{}]*\}|[^/])*))?\/?$/;

const MEMBERS = ['method', 'path', 'headers', 'body'];

/** The writes of one request, as far as they are read. */
class Batch {
  readonly writes: RowWrite[] = [];
  /** The size of all rows, those of defaults included. */
  #bytes = 0;
  /** What the caller may do; undefined without rules. */
  readonly view: RowView | undefined;
  readonly #heads: WriteHead[] = [];
  readonly #relations: ReadonlyMap<string, RowRequests>;
  readonly #options: BatchOptions;
  readonly #ctx: RequestContext;

  constructor(relations: ReadonlyMap<string, RowRequests>, options: BatchOptions, ctx: RequestContext) {
    this.#relations = relations;
    this.#options = options;
    this.#ctx = ctx;
    this.view = viewOf(options, ctx);
  }

  /** Reads a write and adds it. Throws HttpProblem. */
  add(given: unknown): void {
    const nth = this.writes.length;
    try {
      const write = this.#read(sentWrite(given));
      this.writes.push(write);
      if ('row' in write) this.#bytes += sizeOfRow(write.row);
      if (this.#bytes > MAX_ROW_BYTES) throw tooLarge();
    } catch (error) {
      throw error instanceof HttpProblem ? placed(error, nth) : error;
    }
  }

  async reply(outcomes: readonly WriteOutcome[], stores: RowStores): Promise<Reply> {
    const results: string[] = [];
    for (const [nth, outcome] of outcomes.entries()) {
      const rows = stores.get(this.writes[nth]?.relation ?? '');
      const isShown = outcome.is !== 'removed' && (await this.#isShown(rows, outcome.row.values));
      results.push(this.#result(outcome, nth, isShown));
    }
    return json(`{"results":[${results.join()}]}`);
  }

  async #isShown(rows: RowStore | undefined, values: RowValues): Promise<boolean> {
    const { policy } = this.#options;
    if (rows === undefined) return false;
    if (this.view === undefined)
      return policy === undefined || policy.allows(this.#ctx, 'read', rows.relation.name);
    const [isShown = false] = await rows.as(this.view).shows([values]);
    return isShown;
  }

  /** The refusal of a write as a problem that names it. */
  refusal(error: unknown): unknown {
    if (error instanceof RowsRefusedError) {
      const nth = error.conflicts[0]?.row ?? 0;
      const faults = error.conflicts.flatMap((conflict) => conflictFaults(conflict, '#'));
      const problem = new HttpProblem(conflictStatus(error.code), error.code, toldFaults(faults), {
        reasons: faults,
        cause: error,
      });
      return placed(problem, nth);
    }
    if (error instanceof StatementTimeError) return tooLong(error);
    if (!(error instanceof WriteRefusedError)) return error;
    const { write: nth, reason } = error;
    if (reason === 'large') return tooManyResults();
    if (reason === 'missing') return placed(this.#missing(this.writes[nth]?.relation ?? ''), nth);
    if (reason === 'refused') return placed(CHANGED_MEANWHILE, nth);
    const fault = { detail: 'a value of an earlier write does not fit its column', pointer: '#' };
    return placed(invalidRow([fault]), nth);
  }

  #read({ method, path, headers, body }: SentWrite): RowWrite {
    const [bare = '', search] = path.split('?', 2);
    const { prefix } = this.#options;
    const [, relation = '', segment = ''] = PATH.exec(bare.slice(prefix.length)) ?? [];
    const requests = this.#relations.get(relation);
    if (!bare.startsWith(prefix) || requests === undefined) {
      const message = `"path" begins with the name of a relation, such as ${prefix}/${[...this.#relations.keys()][0]}, not ${quote(path)}`;
      throw invalidBatch(message, '#/path');
    }
    const { policy, rules } = this.#options;
    if (rules?.governs(relation) === true) this.#requireAny(relation, method, search);
    else policy?.authorizeOperation(this.#ctx, 'write', relation);
    const head: WriteHead = {
      headers,
      query: queryOf(search),
      caller: this.#ctx.caller?.name,
      view: this.view?.of(requests.format.relation),
    };
    this.#heads.push(head);
    if (segment === '' && method === 'POST') return this.#create(requests, head, body);
    if (segment !== '' && method === 'PATCH') return this.#change(requests, head, segment, body);
    if (segment !== '' && method === 'PUT') return this.#put(requests, head, segment, body);
    if (segment !== '' && method === 'DELETE') {
      return {
        is: 'remove',
        relation,
        key: this.#key(requests, segment),
        condition: requests.condition(head),
      };
    }
    const message = `A batch takes POST for a relation, and PATCH, PUT and DELETE for a row, not ${quote(`${method} ${path}`)}`;
    throw invalidBatch(message, '#/method');
  }

  /** Throws HttpProblem if the caller may not do what a write asks for with any row. */
  #requireAny(relation: string, method: string, search: string | undefined): void {
    const operations: Readonly<Record<string, readonly Operation[]>> = {
      POST: search === undefined ? ['create'] : ['create', 'update'],
      PATCH: ['update'],
      PUT: ['create', 'update'],
      DELETE: ['delete'],
    };
    requireAny(this.#options, this.#ctx, relation, operations[method] ?? []);
  }

  #create(requests: RowRequests, head: WriteHead, given: unknown): RowWrite {
    const { relation } = requests.format;
    const { body, earlier } = this.#body(requests.format, given);
    const rule = requests.upsertRule(head);
    const faults: RowFault[] = [];
    const filled = { ...head, later: new Set(earlier.keys()) };
    const write: RowWrite =
      rule === undefined
        ? { is: 'create', relation: relation.name, row: requests.row(filled, body, '#', faults) }
        : requests.upsert(filled, body, rule, '#', faults);
    if (faults.length > 0) throw invalidRow(faults);
    return { ...write, row: withEarlier(relation, write.row, earlier) };
  }

  #change(requests: RowRequests, head: WriteHead, segment: string, given: unknown): RowWrite {
    const { format } = requests;
    const { relation } = format;
    const key = this.#key(requests, segment);
    const { body, earlier } = this.#body(requests.format, given);
    const condition = requests.condition(head);
    const faults: RowFault[] = [];
    const plain = Object.entries(body as object).filter(([name]) => !earlier.has(name));
    const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
    const view = this.view?.of(relation);
    const read = format.readPatch(isObject ? Object.fromEntries(plain) : body, known(key), faults, view);
    const patch = new Map<number, Given>(read);
    for (const [name, value] of earlier) {
      const column = relation.columns[format.indexOf(name)];
      const detail = column && view?.unwritable(column, false);
      const computed = column && isComputed(column) ? assigned(column) : undefined;
      if (detail !== undefined) faults.push({ detail, pointer: `#/${name}`, code: 'NOT_ALLOWED' });
      if (computed !== undefined) faults.push({ detail: computed, pointer: `#/${name}` });
      if (!relation.key.includes(name)) patch.set(format.indexOf(name), value);
      else
        faults.push({
          detail: `"${name}" is part of the key in the path and cannot change`,
          pointer: `#/${name}`,
        });
    }
    if (faults.length > 0) throw invalidRow(faults);
    return { is: 'change', relation: relation.name, key, patch, condition };
  }

  #put(requests: RowRequests, head: WriteHead, segment: string, given: unknown): RowWrite {
    const { relation } = requests.format;
    const key = this.#key(requests, segment);
    const { body, earlier } = this.#body(requests.format, given);
    const rule = requests.putRule(head);
    const faults: RowFault[] = [];
    const filled = { ...head, later: new Set(earlier.keys()) };
    const read = requests.row(filled, body, '#', faults, known(key));
    if (faults.length > 0) throw invalidRow(faults);
    if (!rule.replaces && !rule.creates) throw this.#missing(relation.name);
    const inPath = new Map(relation.key.map((name, i) => [name, key[i] ?? null] as const));
    const row = withEarlier(relation, withEarlier(relation, read, earlier), inPath);
    return { is: 'put', relation: relation.name, row, rule, ...requests.putColumns(head, body) };
  }

  /** The members of a body; those that stand for values of the transaction are apart, and null in `body`. */
  #body(format: RowFormat, given: unknown) {
    const earlier = new Map<string, EarlierValue>();
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return { body: given, earlier };
    const members = Object.entries(given).map(([name, value]): readonly [string, unknown] => {
      const column = isResult(value) ? format.columnOf(name) : undefined;
      if (column === undefined || !isResult(value)) return [name, value];
      const found = this.#valueOf(value.$result, value.pointer, column.type, `#/body/${name}`);
      if (!(found instanceof EarlierValue)) return [name, found.json];
      earlier.set(name, found);
      return [name, null];
    });
    return { body: Object.fromEntries(members) as unknown, earlier };
  }

  /** The key in a path, of which a part may be `{$0/id}`. */
  #key({ format }: RowRequests, segment: string): readonly Given[] {
    const { relation } = format;
    const parts = segment.split(',').map((part, i): string | EarlierValue => {
      const [, write, pointer] = /^\{\$(\d+)(\/[^{}]+)\}$/.exec(part) ?? [];
      const column = relation.columns.find(({ name }) => name === relation.key[i]);
      if (write === undefined || column === undefined) return part;
      const found = this.#valueOf(Number(write), pointer, column.type, '#/path');
      if (found instanceof EarlierValue) return found;
      const parsed = codecOf(column.type).parse(found.json);
      return 'value' in parsed ? encodeURIComponent(codecOf(column.type).formatText(parsed.value)) : '';
    });
    if (!parts.some((part) => part instanceof EarlierValue)) {
      const key = format.readPath(parts.join());
      if (key === undefined) throw this.#missing(relation.name);
      return key;
    }
    if (parts.length !== relation.key.length) throw this.#missing(relation.name);
    return parts.map((part, i) => {
      if (part instanceof EarlierValue) return part;
      const value = format.readPart(i, part);
      if (value === undefined) throw this.#missing(relation.name);
      return value;
    });
  }

  /** A value of an earlier write: as JSON if it is known, else what stands for it. Throws HttpProblem. */
  #valueOf(
    write: unknown,
    pointer: unknown,
    target: ColumnType,
    at: string,
  ): EarlierValue | { readonly json: unknown } {
    const other = typeof write === 'number' ? this.writes[write] : undefined;
    if (other === undefined || typeof write !== 'number') {
      throw invalidBatch(
        `"$result" takes the index of an earlier write, from 0, not ${quote(String(write))}`,
        at,
      );
    }
    const { format } = this.#relations.get(other.relation) as RowRequests;
    const { columns } = format.relation;
    const name = String(pointer).slice(1);
    const source = pointer === `/${name}` ? format.columnOf(name) : undefined;
    if (source === undefined || other.is === 'remove') {
      const names = columns.map((each) => `/${each.name}`);
      const message =
        other.is === 'remove'
          ? `Write ${write} removes a row, so it has no values`
          : `"pointer" takes a column of ${other.relation}, such as ${names[0]}, not ${quote(String(pointer))}${didYouMean(String(pointer), names)}`;
      throw invalidBatch(message, at);
    }
    const column = format.indexOf(name);
    if (this.view?.of(format.relation).readable?.includes(column) === false) {
      const detail = `the caller may not read ${pointer} of write ${write}`;
      throw new HttpProblem(403, 'NOT_ALLOWED', detail, { reasons: [{ detail, pointer: at }] });
    }
    const value = knownValue(other, format, column);
    if (value instanceof EarlierValue) return value;
    if (value !== undefined)
      return { json: value === null ? null : JSON.parse(codecOf(source.type).format(value)) };
    if (kindOf(source.type) === kindOf(target)) return new EarlierValue(write, column);
    throw invalidBatch(
      `${pointer} of write ${write} is of the type ${kindOf(source.type)}, not ${kindOf(target)}`,
      at,
    );
  }

  /** The result of a write as JSON. */
  #result(outcome: WriteOutcome, nth: number, mayRead: boolean): string {
    if (outcome.is === 'removed') return '{"status":204,"headers":{},"body":null}';
    const { relation } = this.writes[nth] as RowWrite;
    const { format } = this.#relations.get(relation) as RowRequests;
    const { values, version } = outcome.row;
    const { prefix } = this.#options;
    const isCreated = outcome.is === 'created';
    const headers = {
      etag: rowValidators(format.relation, version).etag,
      ...(isCreated && { location: `${prefix}/${relation}/${format.path(format.keyOf(values))}` }),
    };
    const head = this.#heads[nth];
    const isWanted = head === undefined || preferences(head).get('return') !== 'minimal';
    const isShown = isWanted && mayRead;
    const status = isCreated ? 201 : isShown ? 200 : 204;
    const readable = this.view?.of(format.relation).readable;
    const body = isShown ? format.json(values, readable) : 'null';
    return `{"status":${status},"headers":${JSON.stringify(headers)},"body":${body}}`;
  }

  #missing(relation: string): HttpProblem {
    return new HttpProblem(404, 'NOT_FOUND', `${relation} has no row with this key`);
  }
}

/** Reads the members of a write. Throws HttpProblem. */
function sentWrite(given: unknown): SentWrite {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalidBatch('A write is an object with "method" and "path"', '#');
  }
  const other = Object.keys(given).find((name) => !MEMBERS.includes(name));
  if (other !== undefined) {
    throw invalidBatch(`A write has no member ${quote(other)}${didYouMean(other, MEMBERS)}`, `#/${other}`);
  }
  const { method, path, headers = {}, body } = given as Readonly<Record<string, unknown>>;
  if (typeof method !== 'string') throw invalidBatch('"method" takes a text, such as POST', '#/method');
  if (typeof path !== 'string') throw invalidBatch('"path" takes a text, such as /books/7', '#/path');
  const fields = Object.entries(Object(headers) as object).map(([name, value]) => {
    if (typeof value !== 'string') throw invalidBatch('"headers" takes an object of texts', '#/headers');
    return [name.toLowerCase(), value] as const;
  });
  if (fields.some(([name]) => name === 'idempotency-key')) {
    throw invalidBatch('Idempotency-Key goes with the whole batch', '#/headers');
  }
  return { method, path, headers: Object.fromEntries(fields), body };
}

/** The parameters of a path; a repeated name has an array. */
function queryOf(search: string | undefined): WriteHead['query'] {
  const given = new URLSearchParams(search ?? '');
  const names = [...new Set(given.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = given.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
}

/** A problem of one write, whose pointers begin at the write, or at its body. */
function placed(problem: HttpProblem, nth: number): HttpProblem {
  const { status, code, message, headers, reasons } = problem;
  const at = `#/writes/${nth}`;
  const listed = reasons.length > 0 ? reasons : [{ detail: message, pointer: '#' }];
  const faults = listed.map((reason) => {
    const { detail } = reason;
    if (!('pointer' in reason)) return { detail, pointer: `${at}/path` };
    const pointer = String(reason.pointer).slice(1);
    const isOfColumn = pointer !== '' && pointer !== '/path' && !pointer.startsWith('/body/');
    const isInBody = IN_BODY.has(code) || (code === 'NOT_ALLOWED' && isOfColumn);
    return { detail, pointer: `${at}${isInBody ? '/body' : ''}${pointer}` };
  });
  return new HttpProblem(status, code, `Write ${nth}: ${message}`, {
    headers,
    reasons: faults,
    cause: problem,
  });
}

/** The codes whose pointers begin at the row. */
const IN_BODY: ReadonlySet<string> = new Set(['INVALID_ROW', 'TAKEN', 'REFERENCE_MISSING']);

function isResult(value: unknown): value is { readonly $result: unknown; readonly pointer: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '$result');
}

/** A key for reading a body; what only the transaction knows is null. */
function known(key: readonly Given[]): readonly Value[] {
  return key.map((value) => (value instanceof EarlierValue ? null : value));
}

/** What a write says about a column of its row; undefined if only the transaction knows its value. */
function knownValue(write: RowWrite, format: RowFormat, column: number): Given | undefined {
  const { columns, key, before } = format.relation;
  const name = columns[column]?.name ?? '';
  // What the database computes, or a hook may replace, is known once it is stored.
  const { default: standard } = columns[column] ?? {};
  if (isComputed(columns[column] ?? {}) || standard?.kind === 'database') return undefined;
  switch (write.is) {
    case 'change':
      if (key.includes(name)) return write.key[key.indexOf(name)];
      return before === undefined ? write.patch.get(column) : undefined;
    case 'create':
    case 'put': {
      const isAssigned = columns[column]?.type.kind === 'serial' && write.row[column] === null;
      return isAssigned || before !== undefined ? undefined : write.row[column];
    }
    default:
      return undefined;
  }
}

/** What a type stores, as far as a value of one can be one of another. */
function kindOf(type: ColumnType): string {
  if (type.kind === 'serial') return 'integer';
  if (type.kind === 'text') return type.form ?? type.kind;
  return type.kind === 'decimal' ? `decimal ${type.scale}` : type.kind;
}
