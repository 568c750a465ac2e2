import { randomUUID } from 'node:crypto';
import { createSender, type Receiver, type Reply } from '../../http/client/sender.ts';
import { UnsignableError } from '../../webhook/schemes/scheme-error.ts';
import { type BodyParts, buildBody } from '../../webhook/sources/build-body.ts';
import { misuse } from './misuse.ts';
import type { SendAs } from './sender-of.ts';
import { noAnswer, signedHeaders } from './signed-headers.ts';

/** A delivery, and how often to send it. */
export interface Sending {
  readonly receiver: Receiver;
  readonly sendAs: SendAs;
  /** By the sender's own name. */
  readonly event: string;
  readonly data: unknown;
  /** Sent byte for byte instead of a body built of event and data. */
  readonly body: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: a new one for each delivery. */
  readonly id: string | undefined;
  readonly count: number;
}

/** The outcome. */
export interface Sent {
  /** The number of answers by their status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly last: { readonly id: string; readonly reply: Reply } | undefined;
  /** Why the last delivery got no answer. */
  readonly problem: string | undefined;
}

/**
 * Sends deliveries one after the other until one gets no answer or the signal is aborted; `onSent` is called after
 * each with their number. Rejects with UsageError when one cannot be built or signed.
 */
export async function sendAll(
  { receiver, sendAs, event, data, body, headers, id, count }: Sending,
  signal: AbortSignal,
  onSent: (sent: number) => void,
): Promise<Sent> {
  using sender = createSender(receiver);
  const statuses = new Map<number, number>();
  let last: Sent['last'];
  for (let i = 0; i < count && !signal.aborted; i++) {
    const own = id ?? randomUUID();
    const content = body ?? built(sendAs, { event, data, id: own });
    const signed = signedHeaders(sendAs, { id: own, event, body: content, headers });
    try {
      const reply = await sender.post(signed, content, signal);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      last = { id: own, reply };
    } catch (error) {
      return { statuses, last, problem: signal.aborted ? undefined : noAnswer(receiver.url, error) };
    }
    onSent(i + 1);
  }
  return { statuses, last, problem: undefined };
}

function built({ layout }: SendAs, parts: BodyParts): Uint8Array {
  try {
    return buildBody(layout, parts);
  } catch (error) {
    throw error instanceof UnsignableError ? misuse(`--data: ${error.message}`) : error;
  }
}
