import type { Caller } from '@portico/transport';

/** A row, or some of its columns, as JSON: decimals and bigints are texts. */
export type HookRow = Readonly<Record<string, unknown>>;

/** A value that the row of a hook has once it is stored; given where a hook adds a write. */
export class StoredValue {
  readonly column: string;

  constructor(column: string) {
    this.column = column;
  }
}

/** Adds writes to the commit of the row. They are not limited by the rules of the caller. */
export interface AddedWrites {
  create(relation: string, row: HookRow): void;
  /** `key` has the columns of the key, or is the value of the only one. */
  update(relation: string, key: HookKey, changes: HookRow): void;
  remove(relation: string, key: HookKey): void;
  /** Stands for a column of the row as it is stored, such as its number. Not for hooks before deletions. */
  stored(column: string): StoredValue;
}

type HookKey = HookRow | string | number;

interface HookEvent {
  readonly relation: string;
  /** Who writes; undefined if no credentials were needed or sent. */
  readonly caller: Caller | undefined;
  readonly writes: AddedWrites;
  /** Aborts when the time of the hook is over. */
  readonly signal: AbortSignal;
}

export interface CreateEvent extends HookEvent {
  /** The new row. It lacks columns that only the database knows: its number, and the keys of rows that are stored with it. */
  readonly row: HookRow;
}

export interface UpdateEvent extends HookEvent {
  /** The row as it is. */
  readonly before: HookRow;
  readonly version: number;
  /** The columns that the client changes. */
  readonly changes: HookRow;
}

export interface DeleteEvent extends HookEvent {
  /** The row as it is. */
  readonly row: HookRow;
  readonly version: number;
}

/** What a hook returns replaces columns of the row; undefined leaves it as it is. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return
type Replaced = HookRow | undefined | void;

/** Functions that run before writes to the rows of a relation, outside of the transaction. */
export interface BeforeHooks {
  readonly create?: (event: CreateEvent) => Replaced | Promise<Replaced>;
  readonly update?: (event: UpdateEvent) => Replaced | Promise<Replaced>;
  readonly delete?: (event: DeleteEvent) => void | Promise<void>;
  /** How long the hooks of a write may take together, in milliseconds. Default: 2,000. */
  readonly timeout?: number;
}

export const HOOK_TIMEOUT = 2_000;
/** Maximum number of writes that the hooks of one transaction add. */
export const MAX_ADDED = 1_000;

/** A hook refuses a row: `throw refuse('OUT_OF_STOCK', 'There are 2 left', '/quantity')`. */
class HookRefusal extends Error {
  override readonly name = 'HookRefusal';
  readonly reason: string;
  readonly pointer: string;

  constructor(reason: string, message: string, pointer: string) {
    super(message);
    this.reason = reason;
    this.pointer = pointer;
  }
}

/**
 * The refusal of a row, to be thrown by a hook. Clients get the code as `reason`, the message and the pointer, which
 * begins at the row.
 */
export function refuse(code: string, message: string, pointer = ''): Error {
  return new HookRefusal(String(code), String(message), String(pointer));
}

/** A fault of a row; the pointer begins at the row. `reason` is the code that a hook gives. */
interface HookFault {
  readonly detail: string;
  readonly pointer: string;
  readonly reason?: string;
}

/** Why a hook, or its limits, refuse a row; pointers begin at the row. */
export interface HookConflict {
  readonly code: 'HOOK_REFUSED' | 'INVALID_ROW' | 'HOOK_TIMEOUT' | 'LIMIT_EXCEEDED';
  readonly row: number;
  readonly faults: readonly HookFault[];
}

/** A hook failed otherwise than by a refusal; nothing was stored. */
export class HookError extends Error {
  override readonly name = 'HookError';
  readonly relation: string;

  constructor(relation: string, hook: string, cause: unknown) {
    super(
      `The hook before ${hook} of ${relation} failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    );
    this.relation = relation;
  }
}

/** The time of a hook is over. */
class HookTimeout extends Error {
  override readonly name = 'HookTimeout';
}

/** Runs a hook until a time, in milliseconds of `performance.now()`. Fails with HookError, or with the faults of a refusal. */
export async function runHook<T>(
  { relation, hook, until, timeout }: { relation: string; hook: string; until: number; timeout: number },
  run: (signal: AbortSignal) => T | Promise<T>,
): Promise<{ readonly result: T } | Pick<HookConflict, 'code' | 'faults'>> {
  const late = Promise.withResolvers<never>();
  const abort = new AbortController();
  const timer = setTimeout(() => late.reject(new HookTimeout()), Math.max(0, until - performance.now()));
  try {
    return { result: await Promise.race([late.promise, (async () => run(abort.signal))()]) };
  } catch (error) {
    if (error instanceof HookRefusal) {
      const { message: detail, pointer, reason } = error;
      return { code: 'HOOK_REFUSED', faults: [{ detail, pointer, reason }] };
    }
    if (!(error instanceof HookTimeout)) throw new HookError(relation, hook, error);
    abort.abort(error);
    const detail = `the hook before ${hook} of ${relation} took longer than ${timeout} ms (before.timeout)`;
    return { code: 'HOOK_TIMEOUT', faults: [{ detail, pointer: '' }] };
  } finally {
    clearTimeout(timer);
  }
}
