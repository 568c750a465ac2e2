import { type ExecutionResult, GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import { Departure } from './departure.ts';

/** Who waits for a result, and may leave before it is there. */
export interface Recipient {
  /** Calls a listener once the recipient is gone; returns what takes that back. */
  onLeave(listener: () => void): () => void;
}

/** The result of a run that nobody waits for any more. */
export const ABANDONED: ExecutionResult = {
  errors: [
    new GraphQLError('The client has left before the result', {
      extensions: { code: 'CLIENT_GONE' satisfies ErrorCode },
    }),
  ],
  data: null,
};

/** The result of a run, or ABANDONED once its recipient has left; calls `abandon` then. `result` must not reject. */
export function unlessAbandoned(
  recipient: Recipient | undefined,
  result: Promise<ExecutionResult>,
  abandon: () => void,
): Promise<ExecutionResult> {
  if (recipient === undefined) return result;
  return new Promise((resolve) => {
    const stay = recipient.onLeave(() => {
      abandon();
      resolve(ABANDONED);
    });
    void result.then((made) => {
      stay();
      resolve(made);
    });
  });
}

/** One recipient of several results: they share one listener at it, which long streams and batches need. */
export class SharedRecipient implements Recipient {
  readonly #recipient: Recipient;
  readonly #departure = new Departure();
  #isRegistered = false;

  constructor(recipient: Recipient) {
    this.#recipient = recipient;
  }

  onLeave(listener: () => void): () => void {
    const stay = this.#departure.onLeave(listener);
    if (!this.#isRegistered) {
      this.#isRegistered = true;
      this.#recipient.onLeave(() => this.#departure.leave());
    }
    return stay;
  }
}
