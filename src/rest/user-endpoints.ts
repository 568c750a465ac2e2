import { refuseCrossSite } from '../http/cross-site.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { DatabaseUserStore } from '../users/database-user-store.ts';
import { importEndpoint } from './bulk/import-endpoint.ts';
import { createUser } from './create-user.ts';
import { readList, readUser } from './read-users.ts';
import { removeUser, updateUser } from './write-users.ts';

/** What the endpoints work with. */
export interface UserEndpointOptions {
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
}

/** One endpoint per operation of contract 4.2. */
export function userEndpoints(options: UserEndpointOptions) {
  const write = { bodyLimit: options.bodyLimit, admit: refuseCrossSite };
  return {
    list: { bodyLimit: 0, handle: readList(options) },
    read: { bodyLimit: 0, handle: readUser(options) },
    create: { ...write, handle: createUser(options), streamed: importEndpoint(options) },
    update: { ...write, handle: updateUser(options) },
    remove: { ...write, handle: removeUser(options) },
  } satisfies Record<string, Endpoint>;
}
