import { HttpProblem, reasonPhrase } from '../problem.ts';

/** A reply that is being sent. */
export interface SentReply {
  /** Calls a listener once the client has it or is gone. */
  onClose(listener: () => void): void;
  /** Closes the connection. */
  cut(): void;
}

interface Held {
  readonly bytes: number;
  readonly since: number;
  readonly reply: SentReply;
}

/** Smaller replies are not counted, in bytes: the system takes them at once. */
export const LARGE_REPLY = 16 * 1024;
/** A reply that is being sent for less than this makes room for nobody, in milliseconds. */
const EVICTABLE = 1_000;

/**
 * Bounds the bytes of all large replies that clients have not read yet. When they become too many, the replies that are
 * unread for longest are cut; if those are no older than a second the new one is refused.
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
      if (this.#fits(bytes) || now - held.since < EVICTABLE) break;
      this.#release(held);
      held.reply.cut();
    }
    if (!this.#fits(bytes)) {
      throw new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } });
    }
    const held: Held = { bytes, since: now, reply };
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
