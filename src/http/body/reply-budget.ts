import type { Socket } from 'node:net';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/** A reply that is being sent. */
export interface SentReply {
  /** Calls a listener once the client has it or is gone. */
  onClose(listener: () => void): void;
  /** The bytes of its connection that the system has taken so far. */
  taken(): number;
  /** Closes the connection. */
  cut(): void;
}

interface Held {
  readonly bytes: number;
  readonly reply: SentReply;
  /** What `taken` said last, and since when. */
  taken: number;
  since: number;
}

/** Smaller replies are not counted, in bytes: the system takes them at once. */
export const LARGE_REPLY = 16 * 1024;
/** A reply of which something was read within this time makes room for nobody, in milliseconds. */
const EVICTABLE = 1_000;

/**
 * Bounds the bytes of all large replies that clients have not read yet. When they become too many, the oldest of those
 * that nobody has read of for a second are cut; without such the new one is refused.
 */
export class ReplyBudget {
  readonly #maxBytes: number;
  /** Oldest first. */
  readonly #held = new Set<Held>();
  #bytes = 0;

  /** `maxBytes` does not hold for a single reply that is larger. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a reply until it is closed. Throws HttpProblem, 503 with Retry-After, when it does not fit. */
  take(bytes: number, reply: SentReply): void {
    if (bytes < LARGE_REPLY) return;
    const now = performance.now();
    for (const held of this.#held) {
      if (this.#fits(bytes)) break;
      if (!isStalled(held, now)) continue;
      this.#release(held);
      held.reply.cut();
    }
    if (!this.#fits(bytes)) {
      throw new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } });
    }
    const held: Held = { bytes, reply, taken: reply.taken(), since: now };
    this.#held.add(held);
    this.#bytes += bytes;
    reply.onClose(() => this.#release(held));
  }

  #fits(bytes: number): boolean {
    return this.#held.size === 0 || this.#bytes + bytes <= this.#maxBytes;
  }

  #release(held: Held): void {
    if (this.#held.delete(held)) this.#bytes -= held.bytes;
  }
}

/** The bytes of a connection that the system has taken so far. */
export function takenBy(socket: Socket | null): number {
  return socket === null ? 0 : socket.bytesWritten - socket.writableLength;
}

/** Whether nothing was read of a reply since it was looked at, for long enough. */
function isStalled(held: Held, now: number): boolean {
  const taken = held.reply.taken();
  if (taken !== held.taken) {
    held.taken = taken;
    held.since = now;
  }
  return now - held.since >= EVICTABLE;
}
