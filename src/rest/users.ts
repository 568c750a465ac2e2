import type { BodyBudget, Endpoint } from '@portico/transport';
import { type Guards, guarded } from '../access/guarded.ts';
import type { Need } from '../access/need.ts';
import { refuseCrossSite } from '../http/cross-site.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { importEndpoint } from './bulk.ts';
import { createUser } from './create-user.ts';
import { readList, readUser } from './read-users.ts';
import { removeUser, updateUser } from './write-users.ts';

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
