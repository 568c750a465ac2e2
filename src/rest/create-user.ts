import {
  type Endpoint,
  type Exchange,
  handlesStrictly,
  preferences,
  type Reply,
  STRICT_APPLIED,
} from '@portico/transport';
import type { ApiGate } from '../access/gate.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { accepted, type NewUser } from '../relations/user.ts';
import { CREATED, json, withData } from './rest-errors.ts';
import type { UserEndpointOptions } from './users.ts';
import { createdOf, createKey, readUserBody, userValidators } from './validators.ts';

/** POST /users. */
export function createUser({
  users,
  prefix,
  idempotencyHours,
  gate,
}: UserEndpointOptions): Endpoint['handle'] {
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
export function showsUser(exchange: Exchange, gate: ApiGate | undefined): boolean {
  if (exchange.headers.prefer === undefined) return false;
  if (preferences(exchange).get('return') !== 'representation') return false;
  return gate === undefined || gate.allows(exchange, 'read');
}
