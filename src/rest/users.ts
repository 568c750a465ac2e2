import {
  type BodyBudget,
  type Endpoint,
  type Exchange,
  HttpProblem,
  handlesStrictly,
  parseJsonBody,
  preferences,
  type Reply,
  STRICT_APPLIED,
} from '@portico/transport';
import type { ApiGate } from '../access/gate.ts';
import { type Guards, guarded } from '../access/guarded.ts';
import type { Need } from '../access/need.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { quote } from '../core/text.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import { onlyFields, readFields, readListParameters } from '../relations/lists.ts';
import type { ExportFormat } from '../relations/pages.ts';
import {
  accepted,
  type ChangeOutcome,
  type NewUser,
  readUserId,
  type WriteCondition,
} from '../relations/user.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { importEndpoint } from './bulk.ts';
import { askedExport, exporter } from './export-endpoint.ts';
import { listPage, totalHeaders, userLister } from './lists.ts';
import { CREATED, data, done, json, methodNotAllowed, NO_SUCH_USER, withData } from './rest-errors.ts';
import {
  CHANGED_MEANWHILE,
  createdOf,
  createKey,
  isConditional,
  isMergePatch,
  listValidators,
  NEEDS_IF_MATCH,
  notModified,
  readUserBody,
  readUserPatch,
  userValidators,
  validatorHeaders,
  writeCondition,
} from './validators.ts';

/** What the endpoints work with. */
export interface UserEndpointOptions extends Guards {
  readonly users: DatabaseUserStore;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
  /** Stands before the paths that clients see. */
  readonly prefix: string;
  /** Whether updates and deletions need a condition. */
  readonly requireIfMatch: boolean;
  /** How long the outcome of a create with a key is kept, in hours. */
  readonly idempotencyHours: number;
  /** Largest import in bytes. */
  readonly maxImportBytes: number;
  /** Bounds what imports in one transaction hold. */
  readonly bodyBudget: BodyBudget;
}

/** One endpoint per operation of CONTRACT.md#rest-routes. */
export function userEndpoints(options: UserEndpointOptions) {
  const { bodyLimit, cors } = options;
  const reading = (handle: Endpoint['handle']) => behind('read', { bodyLimit: 0, handle });
  const writing = (operation: Pick<Endpoint, 'handle' | 'streamed'>) =>
    behind('write', { bodyLimit, admit: (exchange) => refuseCrossSite(exchange, cors), ...operation });
  const behind = (need: Need, endpoint: Endpoint) =>
    guarded(endpoint, options, (each, exchange) => each.admit(exchange, need));
  return {
    list: reading(readList(options)),
    read: reading(readUser(options)),
    create: writing({ handle: createUser(options), streamed: importEndpoint(options) }),
    update: writing({ handle: updateUser(options) }),
    remove: writing({ handle: removeUser(options) }),
  } satisfies Record<string, Endpoint>;
}

/** GET /users: all users, or the page that the parameters ask for. */
function readList({ users, prefix }: UserEndpointOptions): Endpoint['handle'] {
  const path = `${prefix}/users`;
  const list = userLister(users, 'json');
  const exportUsers = exporter(users);
  let lastState: string | undefined;
  let lastHeaders: Readonly<Record<string, string>> = {};

  /** The same object as long as the users are, so that the fast path knows the head of the reply. */
  function headersOf(state: string): Readonly<Record<string, string>> {
    if (state !== lastState || lastHeaders['last-modified'] === undefined) {
      lastState = state;
      lastHeaders = validatorHeaders(listValidators(state));
    }
    return lastHeaders;
  }

  const whole = (more?: Reply['headers']) =>
    whenReady(list(), ({ body, state }) =>
      json(body, 200, more === undefined ? headersOf(state) : { ...headersOf(state), ...more }),
    );

  /** All users as lines: pages and filters are those of JSON. */
  function exportAsked(exchange: Exchange, format: ExportFormat): MaybePromise<Reply> {
    const isLenient = preferences(exchange).get('handling') === 'lenient';
    if (readListParameters(exchange.query, isLenient) === undefined) return exportUsers(format, exchange);
    const [name = ''] = Object.keys(exchange.query);
    throw new HttpProblem(
      400,
      'INVALID_PARAMETER',
      `${quote(name)} goes with application/json; CSV and NDJSON have all users`,
    );
  }

  /** Judges what is asked for; the list is read when the result is called. */
  function prepare(exchange: Exchange): () => MaybePromise<Reply> {
    if (exchange.headers.prefer === undefined && isEmpty(exchange.query)) return whole;
    const prefers = preferences(exchange);
    const asked = readListParameters(exchange.query, prefers.get('handling') === 'lenient');
    const counts = prefers.get('count') === 'exact';
    if (asked !== undefined) return () => listPage(users.lists, asked, { path, counts });
    return counts ? () => users.lists.count([]).then((total) => whole(totalHeaders(total))) : whole;
  }

  return (exchange) => {
    const format = askedExport(exchange);
    if (format !== undefined) return exportAsked(exchange, format);
    const read = prepare(exchange);
    if (!isConditional(exchange)) return read();
    // The users are read only where they have changed.
    return whenReady(users.state(), (state) => notModified(exchange, listValidators(state)) ?? read());
  };
}

function isEmpty(query: Exchange['query']): boolean {
  for (const _ in query) return false;
  return true;
}

/** GET /users/<id>. */
function readUser({ users }: UserEndpointOptions): Endpoint['handle'] {
  return (exchange) => {
    const id = readUserId(exchange.param);
    if (id === undefined) throw NO_SUCH_USER;
    const { fields } = exchange.query;
    const shown = fields === undefined ? undefined : readFields(String(fields));
    return whenReady(users.read(id), (user) => {
      if (user === undefined) throw NO_SUCH_USER;
      const validators = userValidators(user.version);
      if (isConditional(exchange)) {
        const known = notModified(exchange, validators);
        if (known !== undefined) return known;
      }
      const body = data(shown === undefined ? user.json : onlyFields(user.json, shown));
      return json(body, 200, validatorHeaders(validators));
    });
  };
}

/** POST /users. */
function createUser({ users, prefix, idempotencyHours, gate }: UserEndpointOptions): Endpoint['handle'] {
  const created = (exchange: Exchange, user: NewUser, id: number, version: number): Reply => {
    const headers = { location: `${prefix}/users/${id}`, etag: userValidators(version).etag };
    const reply = handlesStrictly(exchange)
      ? json(CREATED, 201, { ...headers, ...STRICT_APPLIED })
      : json(CREATED, 200, headers);
    return showsUser(exchange, gate) ? withData(reply, JSON.stringify({ id, ...user })) : reply;
  };

  return (exchange): MaybePromise<Reply> => {
    const key = createKey(exchange, idempotencyHours);
    const user = readUserBody(exchange);
    if (key !== undefined) {
      return accepted(users.createOnce(user, key)).then((outcome) => {
        const { id, version } = createdOf(outcome);
        return created(exchange, user, id, version);
      });
    }
    const version = Date.now();
    return accepted(users.create(user, version)).then((id) => created(exchange, user, id, version));
  };
}

/**
 * Whether the reply of a write has the user: the client prefers that, and its caller may read. A preference that cannot
 * be followed is no error (RFC 7240 2).
 */
function showsUser(exchange: Exchange, gate: ApiGate | undefined): boolean {
  if (exchange.headers.prefer === undefined) return false;
  if (preferences(exchange).get('return') !== 'representation') return false;
  return gate === undefined || gate.allows(exchange, 'read');
}

const UPDATED = json(done('User updated successfully'));
const DELETED = json(done('User deleted successfully'));

/** Any version. */
const ANY: WriteCondition = { versions: undefined, before: undefined };

/** PUT /update/<id>: a whole user, or as a merge patch some of its fields. */
function updateUser({ users, requireIfMatch, gate }: UserEndpointOptions): Endpoint['handle'] {
  return (exchange) =>
    written(exchange, () => {
      const isPatch = isMergePatch(exchange);
      const shows = showsUser(exchange, gate);
      const condition = conditionOf(exchange, requireIfMatch);
      if (!isPatch && !shows && condition === undefined) {
        const user = readUserBody(exchange);
        return (id) => accepted(users.update(id, user)).then(found(UPDATED));
      }
      const fields = isPatch ? readUserPatch(exchange) : readUserBody(exchange);
      return async (id) => {
        const outcome = await accepted(users.change(id, { ...fields, condition: condition ?? ANY }));
        const reply = changed(outcome);
        return shows && outcome.is === 'changed' ? withData(reply, outcome.json) : reply;
      };
    });
}

/** DELETE /delete/<id>. */
function removeUser({ users, requireIfMatch }: UserEndpointOptions): Endpoint['handle'] {
  return (exchange) =>
    written(exchange, () => {
      // CONTRACT.md#rest-routes: no body is asked for; one that comes is JSON like all others
      if (exchange.body.length > 0) parseJsonBody(exchange.body);
      const condition = conditionOf(exchange, requireIfMatch);
      if (condition === undefined) return (id) => whenReady(users.remove(id), found(DELETED));
      return (id) => whenReady(users.removeIf(id, condition), changed);
    });
}

/** Reads what to write, then writes it to the user that the path names. */
function written({ param }: Exchange, read: () => (id: number) => MaybePromise<Reply>): MaybePromise<Reply> {
  // CONTRACT.md#rest-routes: no id where one is needed
  if (param === '') throw methodNotAllowed('OPTIONS');
  const write = read();
  const id = readUserId(param);
  if (id === undefined) throw NO_SUCH_USER;
  return write(id);
}

function conditionOf(exchange: Exchange, isRequired: boolean): WriteCondition | undefined {
  const condition = writeCondition(exchange);
  if (condition === undefined && isRequired) throw NEEDS_IF_MATCH;
  return condition;
}

function found(success: Reply): (isThere: boolean) => Reply {
  return (isThere) => {
    if (!isThere) throw NO_SUCH_USER;
    return success;
  };
}

function changed(outcome: ChangeOutcome): Reply {
  if (outcome.is === 'missing') throw NO_SUCH_USER;
  if (outcome.is === 'refused') throw CHANGED_MEANWHILE;
  if (outcome.is === 'removed') return DELETED;
  return { ...UPDATED, headers: { etag: userValidators(outcome.version).etag } };
}
