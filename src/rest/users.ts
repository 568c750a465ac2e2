import {
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { refuseCrossSite } from '../access/cors.ts';
import { type Guards, guarded } from '../access/guarded.ts';
import type { AccessPolicy, Permission } from '../access/policy.ts';
import { handlesStrictly, preferences, prefersEventStream, STRICT_APPLIED } from '../core/negotiation.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { quote } from '../core/text.ts';
import type { ExportFormat } from '../relations/lists.ts';
import { onlyFields, readFields, readListParameters } from '../relations/lists.ts';
import {
  accepted,
  type ChangeOutcome,
  type NewUser,
  readUserId,
  type WriteCondition,
} from '../relations/user.ts';
import { type DatabaseUserStore, userImports } from '../relations/user-stores.ts';
import { askedImport, type ImportLimits, importer } from './bulk.ts';
import { askedExport, exporter, listHead, listPage, totalHeaders, userLister } from './lists.ts';
import {
  CREATED,
  createKey,
  data,
  done,
  isConditional,
  isMergePatch,
  JSON_TYPE,
  json,
  keptOf,
  listValidators,
  methodNotAllowed,
  NEEDS_IF_MATCH,
  NO_SUCH_USER,
  notModified,
  readUserBody,
  readUserPatch,
  userValidators,
  validatorHeaders,
  withData,
  writeCondition,
} from './messages.ts';

/** Options of the endpoints. */
interface UserEndpointOptions extends Guards, ImportLimits {
  readonly users: DatabaseUserStore;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
  /** The prefix of the paths that clients see. */
  readonly prefix: string;
  /** Whether updates and deletions need a condition. */
  readonly requireIfMatch: boolean;
  /** How long the outcome of a create with a key is kept, in hours. */
  readonly idempotencyHours: number;
  /** Answers GET /users as an event stream; undefined if there is none. */
  readonly changes: Endpoint['handle'] | undefined;
}

/** One endpoint per operation of CONTRACT.md#rest-routes. */
export function userEndpoints(options: UserEndpointOptions) {
  const { bodyLimit, cors } = options;
  const reading = (handle: Endpoint['handle']) => behind('read', { bodyLimit: 0, handle });
  const writing = (operation: Pick<Endpoint, 'handle' | 'body'>) =>
    behind('write', { bodyLimit, authorize: (ctx) => refuseCrossSite(ctx, cors), ...operation });
  const behind = (need: Permission, endpoint: Endpoint) =>
    guarded(endpoint, options, (each, ctx) => each.authorize(ctx, need));
  return {
    list: reading(readList(options)),
    read: reading(readUser(options)),
    create: writing(createUsers(options)),
    update: writing({ handle: updateUser(options) }),
    remove: writing({ handle: removeUser(options) }),
  } satisfies Record<string, Endpoint>;
}

/** GET /users: all users, the requested page, or an event stream. */
function readList({ users, prefix, changes }: UserEndpointOptions): Endpoint['handle'] {
  const path = `${prefix}/users`;
  const list = userLister(users, 'json');
  const exportUsers = exporter(users);
  let lastState: string | undefined;
  let lastHeaders: Readonly<Record<string, string>> = {};

  /**
   * Returns the same object while the users do not change, so that the fast path can reuse the head of the
   * reply.
   */
  function headersOf(state: string): Readonly<Record<string, string>> {
    if (state !== lastState || lastHeaders['last-modified'] === undefined) {
      lastState = state;
      lastHeaders = validatorHeaders(listValidators(state));
    }
    return lastHeaders;
  }

  const whole = (ctx: RequestContext, more?: Reply['headers']) =>
    whenReady(ctx.method === 'HEAD' ? listHead(users) : list(), ({ body, state }) =>
      json(body, 200, more === undefined ? headersOf(state) : { ...headersOf(state), ...more }),
    );

  /** Exports all users as lines; paging and filters exist only for JSON. */
  function exportAsked(ctx: RequestContext, format: ExportFormat): MaybePromise<Reply> {
    const isLenient = preferences(ctx).get('handling') === 'lenient';
    if (readListParameters(ctx.query, isLenient) === undefined) return exportUsers(format, ctx);
    const [name = ''] = Object.keys(ctx.query);
    throw new HttpProblem(
      400,
      'INVALID_PARAMETER',
      `${quote(name)} goes with application/json; CSV and NDJSON have all users`,
    );
  }

  /** Validates the request; the returned function reads the list. */
  function prepare(ctx: RequestContext): () => MaybePromise<Reply> {
    if (ctx.headers.prefer === undefined && isEmpty(ctx.query)) return () => whole(ctx);
    const prefers = preferences(ctx);
    const asked = readListParameters(ctx.query, prefers.get('handling') === 'lenient');
    const counts = prefers.get('count') === 'exact';
    if (asked !== undefined) return () => listPage(users.lists, asked, { path, counts });
    if (!counts) return () => whole(ctx);
    return () => users.lists.count([]).then((total) => whole(ctx, totalHeaders(total)));
  }

  return (ctx) => {
    if (changes !== undefined && prefersEventStream(ctx.headers.accept, JSON_TYPE)) return changes(ctx);
    const format = askedExport(ctx);
    if (format !== undefined) return exportAsked(ctx, format);
    const read = prepare(ctx);
    if (!isConditional(ctx)) return read();
    // The list is read only if it has changed.
    return whenReady(users.state(), (state) => notModified(ctx, listValidators(state)) ?? read());
  };
}

function isEmpty(query: RequestContext['query']): boolean {
  for (const _ in query) return false;
  return true;
}

/** GET /users/<id>. */
function readUser({ users }: UserEndpointOptions): Endpoint['handle'] {
  return (ctx) => {
    const id = readUserId(ctx.param);
    if (id === undefined) throw NO_SUCH_USER;
    const { fields } = ctx.query;
    const shown = fields === undefined ? undefined : readFields(String(fields));
    return whenReady(users.read(id), (user) => {
      if (user === undefined) throw NO_SUCH_USER;
      const validators = userValidators(user.version);
      if (isConditional(ctx)) {
        const known = notModified(ctx, validators);
        if (known !== undefined) return known;
      }
      const body = data(shown === undefined ? user.json : onlyFields(user.json, shown));
      return json(body, 200, validatorHeaders(validators));
    });
  };
}

/** POST /users: one user, or an import. */
function createUsers(options: UserEndpointOptions): Pick<Endpoint, 'handle' | 'body'> {
  const create = createUser(options);
  const { users } = options;
  const target = userImports(users);
  const importAll = importer(
    {
      target: () => target,
      keyOf: (key) => key,
      begin: (key) => users.beginImport(key),
      idMember: (id) => `"id":${id}`,
    },
    options,
  );
  return {
    body: (request) => (askedImport(request) === undefined ? 'buffer' : 'stream'),
    handle(ctx) {
      const asked = askedImport(ctx);
      return asked === undefined ? create(ctx) : importAll(ctx, asked);
    },
  };
}

/** POST /users with one user. */
function createUser({ users, idempotencyHours, ...options }: UserEndpointOptions): Endpoint['handle'] {
  const created = createdReply(options);
  return (ctx): MaybePromise<Reply> => {
    const key = createKey(ctx, idempotencyHours);
    const user = readUserBody(ctx);
    if (key !== undefined) {
      return accepted(users.createOnce(user, key)).then((outcome) => {
        const { id, version } = keptOf(outcome);
        return created(ctx, user, id, version);
      });
    }
    const version = Date.now();
    return accepted(users.create(user, version)).then((id) => created(ctx, user, id, version));
  };
}

/** Answers a create with the id and the version of its user. */
export function createdReply({ prefix, policy }: Pick<UserEndpointOptions, 'prefix' | 'policy'>) {
  return (ctx: RequestContext, user: NewUser, id: number, version: number): Reply => {
    const headers = { location: `${prefix}/users/${id}`, etag: userValidators(version).etag };
    const reply = handlesStrictly(ctx)
      ? json(CREATED, 201, { ...headers, ...STRICT_APPLIED })
      : json(CREATED, 200, headers);
    return showsUser(ctx, policy) ? withData(reply, JSON.stringify({ id, ...user })) : reply;
  };
}

/**
 * Whether the reply of a write includes the user: the client prefers that, and its caller may read. Ignores a
 * preference that it cannot apply (RFC 7240 2).
 */
export function showsUser(ctx: RequestContext, policy: AccessPolicy | undefined): boolean {
  if (ctx.headers.prefer === undefined) return false;
  if (preferences(ctx).get('return') !== 'representation') return false;
  return policy === undefined || policy.allows(ctx, 'read');
}

const UPDATED = json(done('User updated successfully'));
const DELETED = json(done('User deleted successfully'));

/** Matches any version. */
const ANY: WriteCondition = { versions: undefined, before: undefined };

/** PUT /update/<id>: a whole user, or some of its fields as a merge patch. */
function updateUser({ users, requireIfMatch, policy }: UserEndpointOptions): Endpoint['handle'] {
  return (ctx) =>
    written(ctx, () => {
      const isPatch = isMergePatch(ctx);
      const shows = showsUser(ctx, policy);
      const condition = conditionOf(ctx, requireIfMatch);
      if (!isPatch && !shows && condition === undefined) {
        const user = readUserBody(ctx);
        return (id) => accepted(users.update(id, user)).then(found(UPDATED));
      }
      const fields = isPatch ? readUserPatch(ctx) : readUserBody(ctx);
      return async (id) => {
        const outcome = await accepted(users.change(id, { ...fields, condition: condition ?? ANY }));
        const reply = changed(outcome);
        return shows && outcome.is === 'changed' ? withData(reply, outcome.json) : reply;
      };
    });
}

/** DELETE /delete/<id>. */
function removeUser({ users, requireIfMatch }: UserEndpointOptions): Endpoint['handle'] {
  return (ctx) =>
    written(ctx, () => {
      // CONTRACT.md#rest-routes: no body is needed; one that is sent must be JSON
      if (ctx.body.length > 0) parseJsonBody(ctx.body);
      const condition = conditionOf(ctx, requireIfMatch);
      if (condition === undefined) return (id) => accepted(users.remove(id)).then(found(DELETED));
      return (id) => accepted(users.removeIf(id, condition)).then(changed);
    });
}

/** Reads the change from the request, then writes it to the user in the path. */
function written(
  { param }: RequestContext,
  read: () => (id: number) => MaybePromise<Reply>,
): MaybePromise<Reply> {
  // CONTRACT.md#rest-routes: the id is missing
  if (param === '') throw methodNotAllowed('OPTIONS');
  const write = read();
  const id = readUserId(param);
  if (id === undefined) throw NO_SUCH_USER;
  return write(id);
}

/** The condition of a write. Throws HttpProblem if it is missing and required. */
export function conditionOf(ctx: RequestContext, isRequired: boolean): WriteCondition | undefined {
  const condition = writeCondition(ctx);
  if (condition === undefined && isRequired) throw NEEDS_IF_MATCH;
  return condition;
}

function found(success: Reply): (isThere: boolean) => Reply {
  return (isThere) => {
    if (!isThere) throw NO_SUCH_USER;
    return success;
  };
}

/** Answers a conditional write. Throws HttpProblem unless it was made. */
export function changed(outcome: ChangeOutcome): Reply {
  if (outcome.is === 'missing') throw NO_SUCH_USER;
  if (outcome.is === 'refused') throw CHANGED_MEANWHILE;
  if (outcome.is === 'removed') return DELETED;
  return { ...UPDATED, headers: { etag: userValidators(outcome.version).etag } };
}

/** The refusal of a write whose condition does not match the user's version. */
const CHANGED_MEANWHILE = new HttpProblem(
  412,
  'PRECONDITION_FAILED',
  'The user has been changed since; read it again',
);
