import type { ContextDetails } from '../config/schema/graphql-code.ts';
import type { Recipient } from './execution/recipient.ts';

/** Makes the signal when it is asked for: most contexts need none. */
export class RequestLifetime implements ContextDetails {
  readonly connectionParams: ContextDetails['connectionParams'];
  readonly caller: ContextDetails['caller'];
  readonly #recipient: Recipient;
  #controller: AbortController | undefined;

  constructor(
    recipient: Recipient,
    connectionParams: ContextDetails['connectionParams'],
    caller: ContextDetails['caller'],
  ) {
    this.connectionParams = connectionParams;
    this.caller = caller;
    this.#recipient = recipient;
  }

  get abortSignal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#recipient.onLeave(() => controller.abort());
    }
    return this.#controller.signal;
  }
}
