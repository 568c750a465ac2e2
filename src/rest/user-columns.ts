import {
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { isRecord } from '../core/json.ts';
import { prefersEventStream } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { type Relation, USER_COLUMNS } from '../relations/relation.ts';
import { conflictFaults, listedFaults, toldFaults } from '../relations/rows/faults.ts';
import {
  type RowFault,
  RowFormat,
  type RowPatch,
  type RowStore,
  RowsRefusedError,
  type RowValues,
} from '../relations/rows/rows.ts';
import { userRowImports } from '../relations/rows/user-imports.ts';
import type { RowOutcome } from '../relations/rows/writes.ts';
import { columnsOfRow } from '../relations/selections/read-selection.ts';
import { emailTaken, type NewUser, readUserId, userProblems } from '../relations/user.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { askedImport, type ImportLimits, importer } from './bulk.ts';
import { askedExport } from './lists.ts';
import {
  createKey,
  data,
  isConditional,
  isMergePatch,
  JSON_TYPE,
  json,
  keptOf,
  NO_SUCH_USER,
  notModified,
  userValidators,
  validatorHeaders,
  withData,
} from './messages.ts';
import { exporterOf } from './relation-exports.ts';
import { digestedReply, explained, listOf, type RelationListOptions } from './relation-lists.ts';
import { ShownRows } from './relations/shown-rows.ts';
import { changed, conditionOf, createdReply, showsUser, type userEndpoints } from './users.ts';

type UserEndpoints = ReturnType<typeof userEndpoints>;

interface UserColumnOptions extends RelationListOptions, ImportLimits {
  readonly users: DatabaseUserStore;
  readonly requireIfMatch: boolean;
  /** How long the outcome of a create with a key is kept, in hours. */
  readonly idempotencyHours: number;
}

/**
 * The endpoints of users for a declaration that adds columns to them or refers to them. Requests that name
 * none of that are answered as without a declaration.
 */
export function withColumns(
  { list, read, create, update, remove }: UserEndpoints,
  rows: RowStore,
  options: UserColumnOptions,
): UserEndpoints {
  const { columns, references, inverses } = rows.relation;
  const added = columns.map(({ name }) => name).filter((name) => !USER_COLUMNS.includes(name));
  const names = new Set([...added, ...[...references, ...inverses].map(({ name }) => name)]);
  const users = new UserColumns(rows, new Set(added), options);
  const page = listOf(rows, { ...options, frame: FRAME });
  const exportRows = exporterOf(rows, options);
  const importRows = added.length === 0 ? undefined : userImporter(rows, options);
  const either = <E extends Endpoint>(
    endpoint: E,
    handle: (ctx: RequestContext) => MaybePromise<Reply> | undefined,
  ) => ({
    ...endpoint,
    handle: (ctx: RequestContext) => handle(ctx) ?? endpoint.handle(ctx),
  });
  return {
    list: either(list, (ctx) => {
      if (!isNamed(ctx, names)) return undefined;
      const format = askedExport(ctx);
      return format === undefined ? page(ctx) : exportRows(ctx, format);
    }),
    read: either(read, (ctx) => (fieldsName(ctx.query.fields, names) ? users.read(ctx) : undefined)),
    create: either(create, (ctx) => {
      const asked = askedImport(ctx);
      return asked === undefined ? users.create(ctx) : importRows?.(ctx, asked);
    }),
    update: either(update, (ctx) => users.update(ctx)),
    remove,
  };
}

const [before = '', behind = ''] = data('|').split('|');
/** What the contract writes around the users of a page. */
const FRAME = [before, behind] as const;

/** POST /users with many users, one per line. */
function userImporter(rows: RowStore, { users, ...limits }: UserColumnOptions) {
  const target = userRowImports(rows);
  return importer(
    {
      target: () => target,
      keyOf: (key) => key,
      begin: (key) => users.beginImport(key),
      idMember: (id) => `"id":${id}`,
    },
    limits,
  );
}

/** Whether a request for the list names something that users have by a declaration. */
function isNamed(ctx: RequestContext, names: ReadonlySet<string>): boolean {
  if (prefersEventStream(ctx.headers.accept, JSON_TYPE)) return false;
  const { sort, fields } = ctx.query;
  return (
    fieldsName(fields, names) ||
    fieldsName(sort, names) ||
    Object.keys(ctx.query).some(
      (name) => ['where', 'aggregate', 'group'].includes(name) || names.has(firstOf(name)),
    )
  );
}

/** Whether `fields` or `sort` has one of these names, or a `*`. */
function fieldsName(given: unknown, names: ReadonlySet<string>): boolean {
  if (given === undefined) return false;
  const terms = String(given).split(',');
  return terms.some((term) => term === '*' || names.has(firstOf(term.replace(/^-/, ''))));
}

/** The first name of a path such as `team.name:prefix` or `team(name)`. */
function firstOf(path: string): string {
  return path.split(/[.:(]/, 1)[0] ?? '';
}

/** Reads and writes users with the columns of their declaration. */
class UserColumns {
  readonly #rows: RowStore;
  readonly #relation: Relation;
  readonly #format: RowFormat;
  readonly #added: ReadonlySet<string>;
  readonly #shown: ShownRows;
  readonly #options: UserColumnOptions;
  readonly #created: ReturnType<typeof createdReply>;

  constructor(rows: RowStore, added: ReadonlySet<string>, options: UserColumnOptions) {
    this.#rows = rows;
    this.#relation = rows.relation;
    this.#format = new RowFormat(rows.relation);
    this.#added = added;
    this.#shown = new ShownRows(rows.relation, options);
    this.#options = options;
    this.#created = createdReply(options);
  }

  /** GET /users/7?fields=*,phone */
  read(ctx: RequestContext): MaybePromise<Reply> {
    const id = readUserId(ctx.param);
    if (id === undefined) throw NO_SUCH_USER;
    const { fields: only, selection } = this.#shown.of(ctx);
    if (selection !== undefined) {
      const found = explained(() => this.#rows.lists.read([id], selection));
      return whenReady(found, (row) => {
        if (row === undefined) throw NO_SUCH_USER;
        return digestedReply(ctx, data(row));
      });
    }
    return whenReady(this.#rows.read([id]), (row) => {
      if (row === undefined) throw NO_SUCH_USER;
      const validators = userValidators(row.version);
      const known = isConditional(ctx) ? notModified(ctx, validators) : undefined;
      return known ?? json(data(this.#format.json(row.values, only)), 200, validatorHeaders(validators));
    });
  }

  /** POST /users with a user that has one of the columns; undefined for any other body. */
  create(ctx: RequestContext): Promise<Reply> | undefined {
    const given = this.#given(ctx);
    return given === undefined ? undefined : this.#create(ctx, given);
  }

  async #create(ctx: RequestContext, given: Body): Promise<Reply> {
    const key = createKey(ctx, this.#options.idempotencyHours);
    const patch = this.#read(given, given);
    const { name, email } = given as unknown as NewUser;
    const row = this.#relation.columns.map((column, i) => {
      if (column.name === 'id') return null;
      return patch.get(i) ?? (patch.has(i) || column.default?.kind !== 'value' ? null : column.default.value);
    });
    const { id, version } = await refusing(() =>
      key === undefined ? this.#store(row) : this.#storeOnce(row, key),
    );
    return this.#created(ctx, { name, email }, id, version);
  }

  async #store(row: RowValues): Promise<Stored> {
    const [stored] = await this.#rows.create([row]);
    if (stored === undefined) throw new Error('a create returned no row');
    return { id: Number(this.#format.keyOf(stored.values)[0]), version: stored.version };
  }

  async #storeOnce(row: RowValues, key: Parameters<RowStore['createOnce']>[1]): Promise<Stored> {
    const { key: rowKey, row: stored } = keptOf(await this.#rows.createOnce(row, key));
    return { id: Number(rowKey[0]), version: stored?.version ?? 0 };
  }

  /** PUT /update/7 with one of the columns; undefined for any other body. */
  update(ctx: RequestContext): Promise<Reply> | undefined {
    if (ctx.param === '') return undefined;
    const given = this.#given(ctx);
    return given === undefined ? undefined : this.#update(ctx, given);
  }

  async #update(ctx: RequestContext, given: Body): Promise<Reply> {
    const { policy, requireIfMatch } = this.#options;
    const shows = showsUser(ctx, policy);
    const condition = conditionOf(ctx, requireIfMatch);
    const isPatch = isMergePatch(ctx);
    const patch = this.#read(given, isPatch ? { name: 'n', email: 'e@x', ...given } : given);
    const id = readUserId(ctx.param);
    if (id === undefined) throw NO_SUCH_USER;
    const outcome = await refusing(() => this.#rows.change([id], patch, condition));
    return this.#changed(outcome, shows);
  }

  #changed(outcome: RowOutcome, shows: boolean): Reply {
    if (outcome.is === 'created') throw new Error('a change created a user');
    if (outcome.is !== 'changed') return changed(outcome);
    const { values, version } = outcome.row;
    const user = this.#format.json(values, columnsOfRow(this.#relation));
    const reply = changed({ is: 'changed', json: user, version });
    return shows ? withData(reply, user) : reply;
  }

  /** The body, if it is an object with one of the columns. */
  #given({ body }: RequestContext): Body | undefined {
    if (this.#added.size === 0) return undefined;
    const given = parseJsonBody(body);
    return isRecord(given) && Object.keys(given).some((name) => this.#added.has(name)) ? given : undefined;
  }

  /** The columns in a body, whose name and email are valid if those of `whole` are. Throws HttpProblem. */
  #read(given: Body, whole: Body): RowPatch {
    const faults: RowFault[] = [...userProblems(whole)];
    // Other members are ignored.
    const members = Object.entries(given).filter(([name]) => this.#added.has(name) || NAMED.includes(name));
    const own = members.filter(([name]) => this.#added.has(name));
    const patch = new Map(this.#format.readPatch(Object.fromEntries(own), [], faults));
    if (faults.length > 0) {
      const message = faults.map(({ detail }) => detail).join('; ');
      throw new HttpProblem(400, 'INVALID_USER', message, { reasons: faults });
    }
    for (const [name, value] of members) {
      if (NAMED.includes(name)) patch.set(this.#format.indexOf(name), String(value));
    }
    return patch;
  }
}

type Body = Readonly<Record<string, unknown>>;

/** The columns that clients write in every installation. */
const NAMED = ['name', 'email'];

interface Stored {
  readonly id: number;
  /** 0 if the user, whom an earlier request created, is gone. */
  readonly version: number;
}

/** Turns the refusal of a write by constraints into a 409. */
async function refusing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof RowsRefusedError)) throw error;
    const { code, conflicts } = error;
    const reasons = listedFaults(conflicts.flatMap((conflict) => conflictFaults(conflict, '#')));
    const isEmail = conflicts.some((each) => each.code === 'TAKEN' && each.columns.includes('email'));
    const refusal = isEmail ? emailTaken() : { code, message: toldFaults(reasons) };
    throw new HttpProblem(409, refusal.code, refusal.message, { reasons, cause: error });
  }
}
