import type { Recipient } from './execution/recipient.ts';

/** What `context` gets beside the request. */
export interface ContextDetails {
  /** Aborted once the client has left, and once its reply is sent. */
  readonly abortSignal: AbortSignal;
}

/** Makes the signal when it is asked for: most contexts need none. */
export class RequestLifetime implements ContextDetails {
  readonly #recipient: Recipient;
  #controller: AbortController | undefined;

  constructor(recipient: Recipient) {
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
