import type { ReceivedDelivery } from './received-delivery.ts';

/** A delivery as the transformation of a forward address gets it. */
export interface ForwardedDelivery extends ReceivedDelivery {
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The received content type. */
  readonly contentType: string | null;
  /** The received body, byte for byte. */
  readonly rawBody: Uint8Array;
}

/** What is sent in place of the received delivery; what is left out stays as it was. */
export interface TransformedDelivery {
  /** A text or bytes are sent as they are, all else as JSON. */
  readonly body?: unknown;
  /** Further headers, or others in place of `content-type` and `user-agent`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where it is sent; http or https. */
  readonly url?: string | URL;
}

/** Changes what is forwarded. When it throws, rejects or is not done at the timeout, the attempt has failed. */
export type DeliveryTransform = (
  delivery: ForwardedDelivery,
  context: {
    /** Aborts at the timeout of the attempt, and when the process stops. */
    readonly signal: AbortSignal;
  },
) => TransformedDelivery | Promise<TransformedDelivery>;
