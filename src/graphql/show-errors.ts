import { GraphQLError } from 'graphql';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { UserRefusedError } from '../users/user-store.ts';

/** Runs a resolver whose refusals are the client's business; all other errors stay hidden from it. */
export function showErrors<T>(resolve: () => MaybePromise<T>): MaybePromise<T> {
  try {
    const value = resolve();
    return value instanceof Promise ? value.catch(rethrow) : value;
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  if (!(error instanceof UserRefusedError)) throw error;
  throw new GraphQLError(error.message, { extensions: { code: error.code } });
}
