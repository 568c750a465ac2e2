import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { KnownCaller } from './caller.ts';

/** Where tokens are known from. */
export interface TokenSource {
  /** The caller of a token that is known, by its digest: without waiting for anything. */
  find(digest: string, now: number): KnownCaller | undefined;
  /**
   * Looks again for a token that `find` did not know; undefined for one that is not good. Throws or rejects with
   * HttpProblem or StoreUnavailableError when that cannot be told now. "stale" is a genuine token that has expired, which is nobody's guess.
   */
  check?(token: string, digest: string): MaybePromise<KnownCaller | 'stale' | undefined>;
}
