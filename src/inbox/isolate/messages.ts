import { describeError } from '../../core/errors.ts';
import type { ClaimedJob, HandlerLog } from '../delivery.ts';

/** What a thread is started with. */
export interface ThreadData {
  /** The configuration module, absolute. */
  readonly file: string;
  /** See unread-entries.ts. */
  readonly unread: SharedArrayBuffer;
}

/** What a thread is told. The deliveries that it handles are numbered: `run`. */
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

/** What a thread says. */
export type Report =
  /** It has its handlers. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'entry'; readonly entry: Entry }
  /** A handler has ended, with the error that it threw. */
  | { readonly kind: 'ended'; readonly run: number; readonly error?: Thrown }
  /** Nobody handled an error of a delivery whose handler had ended before: the thread takes no further one. */
  | { readonly kind: 'stray'; readonly error: Thrown }
  /** The thread ends, because of the delivery `run` if that is known. */
  | {
      readonly kind: 'ending';
      readonly run: number | undefined;
      readonly why: string;
      readonly error?: Thrown;
    };

/** An error on its way between threads: a clone of the error itself would lose its class and its own fields. */
export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: string | undefined;
}

/** What another thread is told of something thrown; whatever it was. */
export function thrownOf(error: unknown): Thrown {
  const text = describeError(error);
  const end = text.indexOf(': ');
  const [name, message] = [text.slice(0, end), text.slice(end + 2)];
  return { name, message, stack: textOf(error, 'stack'), code: textOf(error, 'code') };
}

/** The error that another thread has thrown, of a class with the same name. */
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
