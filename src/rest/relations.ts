import {
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { refuseCrossSite } from '../access/cors.ts';
import { type Guards, guarded } from '../access/guarded.ts';
import type { Permission } from '../access/policy.ts';
import { enter, type RowAccess, requireAny, ruledEndpoint, viewOf } from '../access/row-access.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import type { Operation } from '../relations/relation.ts';
import { invalidParameter } from '../relations/rows/conditions.ts';
import { importKey, rowImports } from '../relations/rows/import-rows.ts';
import {
  type RowFault,
  RowFormat,
  type RowKey,
  type RowStore,
  type RowStores,
  TooManyRowsError,
} from '../relations/rows/rows.ts';
import type { RowOutcome, RowWrite, StoredRow, UpsertRule, WriteOutcome } from '../relations/rows/writes.ts';
import { hasNested, NestedCreates } from '../relations/selections/nested-creates.ts';
import { askedImport, type ImportLimits, importer } from './bulk.ts';
import { askedExport } from './lists.ts';
import {
  allowedOf,
  createKey,
  isConditional,
  json,
  keptOf,
  methodNotAllowed,
  notModified,
  rowValidators,
  validatorHeaders,
} from './messages.ts';
import { exporterOf } from './relation-exports.ts';
import { digestedReply, explained, listOf, type RelationListOptions } from './relation-lists.ts';
import type { RelationChanges } from './relations/relation-changes.ts';
import {
  CHANGED_MEANWHILE,
  invalidRow,
  parsed,
  RowRequests,
  removalOf,
  type WriteHead,
} from './relations/row-requests.ts';
import { ShownRows } from './relations/shown-rows.ts';
import {
  type Headers,
  isMinimal,
  minimal,
  placed,
  refusingConflicts,
  resolved,
} from './relations/write-replies.ts';

/** Options of the endpoints. */
interface RelationEndpointOptions
  extends Omit<Guards, 'policy'>,
    RelationListOptions,
    ImportLimits,
    RowAccess {
  /** The rows of all relations that the door serves. */
  readonly stores: RowStores;
  /** Whether writes to a row need a condition. */
  readonly requireIfMatch: boolean;
  /** How long the outcome of a create with a key is kept, in hours. */
  readonly idempotencyHours: number;
  /** The event streams. */
  readonly changes: RelationChanges;
}

/** Largest body of a write in bytes. */
const BODY_LIMIT = 1024 * 1024;
/** Maximum number of rows of a create. */
const MAX_ROWS = 1_000;
/** Maximum number of their values, those of defaults included. */
const MAX_VALUES = 40_000;
/** Media types other than JSON. */
const NOT_JSON = /ndjson|csv|xml|multipart|octet-stream/i;

/** The endpoints of a relation's rows, by path and method. */
export function relationEndpoints(store: RowStore, options: RelationEndpointOptions) {
  const rows = new Rows(store, options);
  const { name } = store.relation;
  const behind = (need: Permission, operations: readonly Operation[], endpoint: Endpoint) =>
    guarded(ruledEndpoint(endpoint, options, name, operations), options, (policy, ctx) =>
      enter(options, policy, ctx, need, name),
    );
  const reading = (handle: Endpoint['handle']) => behind('read', ['read'], { bodyLimit: 0, handle });
  const writing = (
    operations: readonly Operation[],
    handle: Endpoint['handle'],
    body?: NonNullable<Endpoint['body']>,
  ) =>
    behind('write', operations, {
      bodyLimit: BODY_LIMIT,
      ...(body === undefined ? {} : { body }),
      authorize: (ctx) => refuseCrossSite(ctx, options.cors),
      handle(ctx) {
        if (store.relation.existing?.isView) throw methodNotAllowed('GET, OPTIONS');
        return refusingConflicts(() => handle(ctx));
      },
    });
  const list = listOf(store, options);
  const exportRows = exporterOf(store, options);
  const importRows = rowImporter(store, options);
  return {
    list: reading(
      options.changes.besides((ctx) => {
        const format = askedExport(ctx);
        return format === undefined ? list(ctx) : exportRows(ctx, format);
      }, store.relation),
    ),
    create: writing(
      ['create', 'update'],
      (ctx) => {
        const asked = askedImport(ctx);
        if (asked === undefined) return rows.create(ctx);
        requireAny(options, ctx, name, ['create']);
        if (ctx.query.on !== undefined) throw invalidParameter('on', '"on" does not go with an import');
        return importRows(ctx, isDryRun(ctx) ? { ...asked, ...DRY } : asked);
      },
      (request) => (askedImport(request) === undefined ? 'buffer' : 'stream'),
    ),
    read: reading((ctx) => rows.read(ctx)),
    change: writing(['update'], (ctx) => rows.change(ctx)),
    put: writing(['create', 'update'], (ctx) => rows.put(ctx)),
    remove: writing(['delete'], (ctx) => rows.remove(ctx)),
    removeAll: writing(['delete'], (ctx) => rows.removeAll(ctx)),
  } satisfies Record<string, Endpoint>;
}

/** A dry run reads all lines before it reports, as a transaction does. */
const DRY = { isWhole: true, isMinimal: true, isDry: true } as const;

/** Whether an import only tells which lines it would refuse. Throws HttpProblem. */
function isDryRun({ query: { dryRun = 'false' } }: RequestContext): boolean {
  if (dryRun !== 'true' && dryRun !== 'false')
    throw invalidParameter('dryRun', '"dryRun" takes true or false');
  return dryRun === 'true';
}

/** POST /books with many rows, one per line. */
function rowImporter(store: RowStore, limits: ImportLimits & RowAccess) {
  const { relation } = store;
  const format = new RowFormat(relation);
  return importer(
    {
      target(ctx) {
        const view = viewOf(limits, ctx);
        return rowImports(store.as(view, ctx.caller), ctx.caller?.name, view?.of(relation), isDryRun(ctx));
      },
      keyOf: (key) => importKey(relation, key),
      begin: (name) => store.beginImport(name),
      idMember: (key) => `"key":${format.keyJson(key)}`,
    },
    limits,
  );
}

/** Answers requests for the rows of a relation. */
class Rows {
  readonly #store: RowStore;
  readonly #format: RowFormat;
  readonly #requests: RowRequests;
  readonly #shown: ShownRows;
  readonly #options: RelationEndpointOptions;

  constructor(store: RowStore, options: RelationEndpointOptions) {
    this.#store = store;
    this.#format = new RowFormat(store.relation);
    this.#requests = new RowRequests(this.#format, options.requireIfMatch);
    this.#shown = new ShownRows(store.relation, options);
    this.#options = options;
  }

  /** The rows as the caller may read and write them. */
  #rows(ctx: RequestContext): RowStore {
    return this.#store.as(viewOf(this.#options, ctx), ctx.caller);
  }

  #head(ctx: RequestContext): WriteHead {
    const { headers, query, caller } = ctx;
    const view = viewOf(this.#options, ctx)?.of(this.#store.relation);
    return { headers, query, caller: caller?.name, view };
  }

  /** GET /books/7 */
  read(ctx: RequestContext): MaybePromise<Reply> {
    const key = this.#key(ctx);
    const { fields: only, selection } = this.#shown.of(ctx);
    if (selection !== undefined) {
      const found = explained(() => this.#rows(ctx).lists.read(key, selection));
      return whenReady(found, (row) => {
        if (row === undefined) throw this.#missing();
        return digestedReply(ctx, row);
      });
    }
    return whenReady(this.#rows(ctx).read(key), (row) => {
      if (row === undefined) throw this.#missing();
      const validators = rowValidators(this.#store.relation, row.version);
      const known = isConditional(ctx) ? notModified(ctx, validators) : undefined;
      return known ?? json(this.#format.json(row.values, only), 200, validatorHeaders(validators));
    });
  }

  /** POST /books with a row, or with an array of rows that are stored all or none. */
  async create(ctx: RequestContext): Promise<Reply> {
    const head = this.#head(ctx);
    const rule = this.#requests.upsertRule(head);
    const given = this.#body(ctx);
    await parsed(ctx);
    const isNested = [given].flat().some((row) => hasNested(this.#store.relation, row));
    if (isNested) return this.#createNested(ctx, given, rule);
    if (Array.isArray(given)) return this.#createAll(ctx, given, rule);
    if (rule !== undefined) {
      const [outcome] = await this.#write(
        ctx,
        this.#requests.upserts(head, [given], rule, () => '#'),
        rule,
      );
      if (outcome === undefined || outcome.is === 'removed') throw new Error('an upsert returned no row');
      return this.#written(ctx, outcome.row, outcome.is === 'created' ? 201 : 200, resolved(ctx, rule));
    }
    const key = createKey(ctx, this.#options.idempotencyHours);
    const [row = []] = this.#requests.rows(head, [given], () => '#');
    requireAny(this.#options, ctx, this.#store.relation.name, ['create']);
    if (key === undefined) {
      const [stored] = await this.#rows(ctx).create([row]);
      if (stored === undefined) throw new Error('a create returned no row');
      return this.#written(ctx, stored, 201);
    }
    const { name } = this.#store.relation;
    // Every path has its own keys; those of users begin without a slash.
    const outcome = await this.#rows(ctx).createOnce(row, { ...key, key: `/${name} ${key.key}` });
    const { key: rowKey, row: stored } = keptOf(outcome);
    if (stored !== undefined) return this.#written(ctx, stored, 201);
    return { status: 201, type: '', body: '', headers: { location: this.#location(rowKey) } };
  }

  /** POST /books with rows of other relations in a row, or in some of an array. */
  async #createNested(ctx: RequestContext, given: unknown, rule: UpsertRule | undefined): Promise<Reply> {
    if (rule !== undefined) throw invalidParameter('on', '"on" does not go with rows of other relations');
    const { relations, policy, rules, stores } = this.#options;
    const { relation } = this.#store;
    const view = viewOf(this.#options, ctx);
    requireAny(this.#options, ctx, relation.name, ['create']);
    const creates = new NestedCreates(relations, {
      caller: ctx.caller?.name,
      view,
      authorize: (name) => {
        if (rules?.governs(name) === true) requireAny(this.#options, ctx, name, ['create']);
        else policy?.authorizeOperation(ctx, 'write', name);
      },
    });
    const isMany = Array.isArray(given);
    for (const [i, row] of [given].flat().entries()) creates.add(relation, row, isMany ? `#/${i}` : '#');
    if (creates.faults.length > 0) throw invalidRow(creates.faults);
    const outcomes = await placed(creates, () => this.#write(ctx, creates.writes, undefined));
    const shown: boolean[] = [];
    for (const [nth, outcome] of outcomes.entries()) {
      const own = stores.get(creates.writes[nth]?.relation ?? '');
      const row = outcome.is === 'removed' ? [] : [outcome.row];
      const [mayShow = false] = own === undefined ? [] : await this.#mayShow(ctx, own, row);
      shown.push(mayShow);
    }
    const isShown = creates.trees.every(({ write }) => shown[write] === true) && !isMinimal(ctx);
    const rows = isShown ? creates.trees.map((tree) => creates.json(tree, outcomes, shown)) : [];
    const [first] = creates.trees;
    const main = first && outcomes[first.write];
    if (isMany || main === undefined || main.is === 'removed') {
      return isShown ? json(`[${rows.join()}]`, 201) : minimal(ctx, 201, {});
    }
    const location = this.#location(this.#format.keyOf(main.row.values));
    const headers = { etag: rowValidators(relation, main.row.version).etag, location };
    return isShown ? json(rows[0] ?? '', 201, headers) : minimal(ctx, 201, headers);
  }

  async #createAll(
    ctx: RequestContext,
    given: readonly unknown[],
    rule: UpsertRule | undefined,
  ): Promise<Reply> {
    if (given.length > MAX_ROWS) {
      const message = `An array takes at most ${MAX_ROWS} rows (array rows); send the others in further requests`;
      throw new HttpProblem(400, 'LIMIT_EXCEEDED', message);
    }
    const { columns } = this.#store.relation;
    if (given.length * columns.length > MAX_VALUES) {
      const most = Math.floor(MAX_VALUES / columns.length);
      const message = `An array takes at most ${most} rows of ${columns.length} columns (array values); send the others in further requests`;
      throw new HttpProblem(400, 'LIMIT_EXCEEDED', message);
    }
    const head = this.#head(ctx);
    const at = (i: number) => `#/${i}`;
    if (rule === undefined && ctx.headers['idempotency-key'] === undefined) {
      const rows = this.#requests.rows(head, given, at);
      requireAny(this.#options, ctx, this.#store.relation.name, ['create']);
      const stored = rows.length === 0 ? [] : await this.#rows(ctx).create(rows);
      return this.#writtenAll(ctx, stored, 201, {});
    }
    const relation = this.#store.relation.name;
    const writes =
      rule === undefined
        ? this.#requests.rows(head, given, at).map((row) => ({ is: 'create', relation, row }) as const)
        : this.#requests.upserts(head, given, rule, at);
    const outcomes = await this.#write(ctx, writes, rule);
    const stored = outcomes.flatMap((outcome) => (outcome.is === 'removed' ? [] : [outcome.row]));
    const isCreated = rule === undefined || outcomes.some((outcome) => outcome.is === 'created');
    return this.#writtenAll(
      ctx,
      stored,
      isCreated ? 201 : 200,
      rule === undefined ? {} : resolved(ctx, rule),
    );
  }

  /** Does writes of a request, once if it has an idempotency key. */
  async #write(
    ctx: RequestContext,
    writes: readonly RowWrite[],
    rule: UpsertRule | undefined,
  ): Promise<readonly WriteOutcome[]> {
    const { transactions, relation } = this.#rows(ctx);
    const how = rule === undefined ? '' : `${rule.resolution} ${rule.on.join()} `;
    const key = createKey(ctx, this.#options.idempotencyHours, how);
    if (key === undefined) return writes.length === 0 ? [] : transactions.write(writes);
    const outcome = await transactions.writeOnce(writes, { ...key, key: `/${relation.name} ${key.key}` });
    return keptOf(outcome).outcomes;
  }

  /** PATCH /books/7 with a merge patch. */
  async change(ctx: RequestContext): Promise<Reply> {
    const key = this.#key(ctx);
    const head = this.#head(ctx);
    const condition = this.#requests.condition(head);
    const faults: RowFault[] = [];
    const given = this.#body(ctx);
    await parsed(ctx);
    const patch = this.#format.readPatch(given, key, faults, head.view);
    if (faults.length > 0) throw invalidRow(faults);
    return this.#changed(ctx, await this.#rows(ctx).change(key, patch, condition));
  }

  /** PUT /books/7 with a whole row. */
  async put(ctx: RequestContext): Promise<Reply> {
    const key = this.#key(ctx);
    const head = this.#head(ctx);
    const rule = this.#requests.putRule(head);
    const faults: RowFault[] = [];
    const given = this.#body(ctx);
    await parsed(ctx);
    const row = this.#requests.row(head, given, '#', faults, key);
    if (faults.length > 0) throw invalidRow(faults);
    if (!rule.replaces && !rule.creates) {
      throw (await this.#rows(ctx).read(key)) === undefined ? this.#missing() : CHANGED_MEANWHILE;
    }
    return this.#changed(ctx, await this.#rows(ctx).put(row, rule, this.#requests.putColumns(head, given)));
  }

  /** DELETE /books/7 */
  async remove(ctx: RequestContext): Promise<Reply> {
    const key = this.#key(ctx);
    const condition = this.#requests.condition(this.#head(ctx));
    return this.#changed(ctx, await this.#rows(ctx).remove(key, condition));
  }

  /** DELETE /books with a filter. Who may not read must not find out by it which rows there are. */
  async removeAll(ctx: RequestContext): Promise<Reply> {
    const { relations, policy, rules } = this.#options;
    const { relation } = this.#store;
    if (rules?.governs(relation.name) === true) requireAny(this.#options, ctx, relation.name, ['read']);
    else policy?.authorizeOperation(ctx, 'read', relation.name);
    const { where, max } = removalOf(relations, relation, ctx, viewOf(this.#options, ctx));
    try {
      const removed = await explained(() => this.#rows(ctx).removeAll(where, max));
      const applied = { 'preference-applied': `max-affected=${max}` };
      return { status: 204, type: '', body: '', headers: { ...applied, 'x-total-count': String(removed) } };
    } catch (error) {
      if (!(error instanceof TooManyRowsError)) throw error;
      const message = `At least ${max + 1} rows match, and Prefer allows ${max} (max-affected); none was removed`;
      throw new HttpProblem(400, 'LIMIT_EXCEEDED', message, { cause: error });
    }
  }

  #changed(ctx: RequestContext, outcome: RowOutcome): MaybePromise<Reply> {
    switch (outcome.is) {
      case 'missing':
        throw this.#missing();
      case 'refused':
        throw CHANGED_MEANWHILE;
      case 'removed':
        return { status: 204, type: '', body: '' };
      case 'created':
        return this.#written(ctx, outcome.row, 201);
      case 'changed':
        return this.#written(ctx, outcome.row, 200);
    }
  }

  /** The reply to a write that stored a row. */
  #written(
    ctx: RequestContext,
    stored: StoredRow,
    status: 200 | 201,
    applied: Headers = {},
  ): MaybePromise<Reply> {
    const { etag } = rowValidators(this.#store.relation, stored.version);
    const location =
      status === 201 ? { location: this.#location(this.#format.keyOf(stored.values)) } : undefined;
    const headers = { etag, ...location, ...applied };
    return whenReady(this.#shownRows(ctx, [stored]), (rows) =>
      rows === undefined ? minimal(ctx, status, headers) : json(rows[0] ?? '', status, headers),
    );
  }

  #writtenAll(
    ctx: RequestContext,
    stored: readonly StoredRow[],
    status: 200 | 201,
    headers: Headers,
  ): MaybePromise<Reply> {
    return whenReady(this.#shownRows(ctx, stored), (rows) =>
      rows === undefined ? minimal(ctx, status, headers) : json(`[${rows.join()}]`, status, headers),
    );
  }

  /** The JSON of written rows; undefined if the caller may not read one of them, or does not want them. */
  #shownRows(ctx: RequestContext, stored: readonly StoredRow[]): MaybePromise<readonly string[] | undefined> {
    if (isMinimal(ctx)) return undefined;
    const only = viewOf(this.#options, ctx)?.of(this.#store.relation).readable;
    return whenReady(this.#mayShow(ctx, this.#store, stored), (all) =>
      all.every(Boolean) ? stored.map(({ values }) => this.#format.json(values, only)) : undefined,
    );
  }

  /** Which rows that the caller has stored it may read. */
  #mayShow(
    ctx: RequestContext,
    rows: RowStore,
    stored: readonly StoredRow[],
  ): MaybePromise<readonly boolean[]> {
    const view = viewOf(this.#options, ctx);
    const { policy } = this.#options;
    if (view !== undefined) return rows.as(view).shows(stored.map(({ values }) => values));
    return stored.map(() => policy === undefined || policy.allows(ctx, 'read', rows.relation.name));
  }

  #location(key: RowKey): string {
    return `${this.#options.prefix}/${this.#store.relation.name}/${this.#format.path(key)}`;
  }

  /** The key in the path, as sent: a comma between parts differs from one that is escaped. */
  #key({ target, param }: RequestContext): RowKey {
    const { name } = this.#store.relation;
    if (param === '') throw methodNotAllowed(allowedOf(`/${name}`, new Set([name])) ?? '');
    const [path = ''] = target.split('?', 1);
    const segment = path.replace(/\/$/, '');
    const key = this.#format.readPath(segment.slice(segment.lastIndexOf('/') + 1));
    if (key === undefined) throw this.#missing();
    return key;
  }

  #body(ctx: RequestContext): unknown {
    if (NOT_JSON.test(ctx.contentType ?? '')) {
      const message = 'The rows of a relation are written as application/json';
      throw new HttpProblem(415, 'UNSUPPORTED_MEDIA_TYPE', message);
    }
    return parseJsonBody(ctx.body, true);
  }

  #missing(): HttpProblem {
    return new HttpProblem(404, 'NOT_FOUND', `${this.#store.relation.name} has no row with this key`);
  }
}
