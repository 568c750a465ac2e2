import { GraphQLError } from 'graphql';
import type { MaybePromise } from '../core/maybe-promise.ts';

/** Codes of errors whose message is meant for the client. */
const SHOWN: ReadonlySet<unknown> = new Set(['INVALID_USER', 'COLLECTION_FULL']);

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
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  if (!SHOWN.has(code)) throw error;
  throw new GraphQLError(String(message), { extensions: { code } });
}
