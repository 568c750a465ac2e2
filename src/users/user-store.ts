import type { MaybePromise } from '../core/maybe-promise.ts';
import type { NewUser } from './user.ts';

/** Consecutive users as JSON text, without the array's brackets. */
export interface UserPage {
  /** Comma-separated JSON objects with the keys id, name, email in this order; empty when there are none. */
  readonly json: string;
  /** How many users the page holds. */
  readonly count: number;
  /** The id of the last one: the keyset cursor of the next page. */
  readonly lastId: number;
}

/**
 * The relational store of users behind the REST door (contract 2.2).
 * Ids are positive safe integers that are never reused. Reads give JSON text, because the engines
 * build it faster than rows can be turned into it here.
 * Every method fails with StoreUnavailableError while the store cannot answer.
 */
export interface UserStore {
  /** The user as a JSON object with the keys id, name, email in this order; undefined when there is none. */
  readJson(id: number): MaybePromise<string | undefined>;
  /** Up to `limit` users in id order with `after` < id <= `upTo`. */
  page(after: number, upTo: number, limit: number): MaybePromise<UserPage>;
  /** The highest id in the store, 0 when it is empty. */
  lastId(): MaybePromise<number>;
  /** Stores a user durably and resolves to its id. */
  create(user: NewUser): Promise<number>;
  /** Replaces name and email durably; resolves to false when no user has that id. */
  update(id: number, user: NewUser): Promise<boolean>;
  /** Removes a user durably; resolves to false when no user has that id. */
  remove(id: number): Promise<boolean>;
}
