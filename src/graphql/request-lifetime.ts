import type { ContextDetails } from '../config/schema/graphql-code.ts';
import type { Recipient } from './execution/recipient.ts';

/** Makes the signal when it is asked for: most contexts need none. */
export class RequestLifetime implements ContextDetails {
  readonly connectionParams: ContextDetails['connectionParams'];
  readonly #recipient: Recipient;
  #controller: AbortController | undefined;

  constructor(recipient: Recipient, connectionParams: ContextDetails['connectionParams']) {
    this.connectionParams = connectionParams;
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
