import { randomUUID } from 'node:crypto';
import { buildBody } from './build-body.ts';
import { createSender, type Reply } from './post.ts';
import type { SendAs } from './sender-of.ts';
import { noAnswer, signedHeaders } from './signed-headers.ts';

/** What is to be sent, and how often. */
export interface Sending {
  readonly url: URL;
  readonly sendAs: SendAs;
  /** By the sender's own name. */
  readonly event: string;
  readonly data: unknown;
  /** Sent as it is, in place of one that is made of event and data. */
  readonly body: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: each delivery has one of its own. */
  readonly id: string | undefined;
  readonly count: number;
}

/** What came of it. */
export interface Sent {
  /** How many were answered with each status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly last: { readonly id: string; readonly reply: Reply } | undefined;
  /** Why one got no answer; it was the last one then. */
  readonly problem: string | undefined;
}

/**
 * Sends one delivery after the other until one gets no answer or the signal is aborted; `onSent` is told of each.
 * Rejects with UsageError when one cannot be made or signed.
 */
export async function sendAll(
  { url, sendAs, event, data, body, headers, id, count }: Sending,
  signal: AbortSignal,
  onSent: (sent: number) => void,
): Promise<Sent> {
  using sender = createSender(url);
  const statuses = new Map<number, number>();
  let last: Sent['last'];
  for (let i = 0; i < count && !signal.aborted; i++) {
    const own = id ?? randomUUID();
    const content = body ?? buildBody(sendAs.layout, { event, data, id: own });
    const signed = signedHeaders(sendAs, { id: own, event, body: content, headers });
    try {
      const reply = await sender.post(signed, content, signal);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      last = { id: own, reply };
    } catch (error) {
      return { statuses, last, problem: signal.aborted ? undefined : noAnswer(url, error) };
    }
    onSent(i + 1);
  }
  return { statuses, last, problem: undefined };
}
