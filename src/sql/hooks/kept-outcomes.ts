import type { WriteOutcome } from '../../relations/rows/writes.ts';
import type { Rows } from '../relations/row-engine.ts';

/** What a write of a client did, its relation, and the statement with its row. */
export type ShownWrite = readonly [is: WriteOutcome['is'], relation: string, step: number];

/** The outcome that is kept with an idempotency key. */
export interface Kept {
  readonly results: readonly Rows[];
  /** The writes of the client, if hooks have added others; undefined if all are. */
  readonly shown: readonly ShownWrite[] | undefined;
}

/** What stands before the results of a transaction to which hooks have added writes. */
export function shownText(writes: readonly ShownWrite[]): string {
  return JSON.stringify({ writes });
}

/**
 * Reads a kept outcome: the digest of a body, which has no space, perhaps the writes of the client, and the results of the
 * statements. Undefined if the digest is another one, or no results are kept, as by a create without rules and hooks.
 */
export function readKept(text: string, fingerprint: string): Kept | undefined {
  const [, digest, shown, results = ''] = /^(\S+) (?:(\{\S+) )?([\s\S]*)$/.exec(text) ?? [];
  if (!results.startsWith('[') || digest !== fingerprint) return undefined;
  const writes =
    shown === undefined ? undefined : (JSON.parse(shown) as { readonly writes: readonly ShownWrite[] });
  return { results: readResults(results), shown: writes?.writes };
}

/** Reads what `keptResults` wrote. */
function readResults(text: string): readonly Rows[] {
  return JSON.parse(text, (_, value: unknown) => {
    const { hex } = Object(value) as { readonly hex?: unknown };
    return typeof hex === 'string' && typeof value === 'object' ? Buffer.from(hex, 'hex') : value;
  }) as readonly Rows[];
}
