import { type Endpoint, type Exchange, parseJsonBody, type Reply } from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { accepted, type ChangeOutcome, readUserId, type WriteCondition } from '../relations/user.ts';
import { showsUser } from './create-user.ts';
import { done, json, methodNotAllowed, NO_SUCH_USER, withData } from './rest-errors.ts';
import type { UserEndpointOptions } from './users.ts';
import {
  CHANGED_MEANWHILE,
  isMergePatch,
  NEEDS_IF_MATCH,
  readUserBody,
  readUserPatch,
  userValidators,
  writeCondition,
} from './validators.ts';

const UPDATED = json(done('User updated successfully'));
const DELETED = json(done('User deleted successfully'));

/** Any version. */
const ANY: WriteCondition = { versions: undefined, before: undefined };

/** PUT /update/<id>: a whole user, or as a merge patch some of its fields. */
export function updateUser({ users, requireIfMatch, gate }: UserEndpointOptions): Endpoint['handle'] {
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
export function removeUser({ users, requireIfMatch }: UserEndpointOptions): Endpoint['handle'] {
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
