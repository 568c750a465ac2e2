import type { Exchange } from '../endpoint.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/** Bounds the bytes of all request bodies under way at the same time, so that many large ones together do not exhaust memory. */
export class ByteBudget {
  readonly #maxBytes: number;
  #inFlight = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes what an exchange needs until that is closed. Throws HttpProblem, 503 with Retry-After, when it does not fit;
   * the connection is closed then, because the unread body would otherwise be taken for the next request.
   */
  take(bytes: number, exchange: Pick<Exchange, 'onClose'>): void {
    if (this.#inFlight + bytes > this.#maxBytes) {
      throw new HttpProblem(503, 'BUSY', reasonPhrase(503), {
        headers: { connection: 'close', 'retry-after': '1' },
      });
    }
    this.#inFlight += bytes;
    exchange.onClose(() => {
      this.#inFlight -= bytes;
    });
  }
}
