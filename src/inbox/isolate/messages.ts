import { describeError } from '../../core/errors.ts';
import type { ClaimedJob, HandlerLog } from '../delivery.ts';

/** The data that a thread starts with. */
export interface ThreadData {
  /** Absolute path of the configuration module. */
  readonly file: string;
  /** The buffer of `UnreadEntries`. */
  readonly unread: SharedArrayBuffer;
}

/** Messages to a thread. `run` numbers the deliveries that it handles. */
export type Order =
  | { readonly kind: 'run'; readonly run: number; readonly event: string; readonly job: ClaimedJob }
  | { readonly kind: 'abort'; readonly run: number; readonly reason: Thrown }
  | { readonly kind: 'close' };

/** An entry of a handler's log. */
export interface Entry {
  readonly level: keyof HandlerLog;
  /** A JSON object. */
  readonly fields: string;
  readonly error: Thrown | undefined;
  readonly message: string;
}

/** Messages from a thread. */
export type Report =
  /** The handlers are imported. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'entry'; readonly entry: Entry }
  /** A handler has ended, possibly with an error. */
  | { readonly kind: 'ended'; readonly run: number; readonly error?: Thrown }
  /** An uncaught error of a delivery whose handler had already ended; the thread accepts no more runs. */
  | { readonly kind: 'stray'; readonly error: Thrown }
  /** The thread ends, caused by the delivery `run` if known. */
  | {
      readonly kind: 'ending';
      readonly run: number | undefined;
      readonly why: string;
      readonly error?: Thrown;
    };

/** An error in transit between threads: a structured clone would lose its class and custom fields. */
export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: string | undefined;
}

/** Serializes any thrown value for another thread. */
export function thrownOf(error: unknown): Thrown {
  const text = describeError(error);
  const end = text.indexOf(': ');
  const [name, message] = [text.slice(0, end), text.slice(end + 2)];
  return { name, message, stack: textOf(error, 'stack'), code: textOf(error, 'code') };
}

/** Recreates an error of another thread, with a class of the same name. */
export function errorOf({ name, message, stack, code }: Thrown): Error {
  const { [name]: Named = Error } = { [name]: class extends Error {} };
  const error = new Named(message);
  Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}

function textOf(error: unknown, key: 'stack' | 'code'): string | undefined {
  try {
    const value = (error as { readonly [K in typeof key]?: unknown } | null | undefined)?.[key];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
