import type { ClaimedJob } from '../../inbox/delivery.ts';
import type { HandlerLog } from '../../inbox/handler.ts';
import type { Thrown } from './thrown.ts';

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
