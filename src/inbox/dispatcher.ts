import { setTimeout as delay } from 'node:timers/promises';
import { parseJsonBody } from '../http/json-body.ts';
import type { ClaimedDelivery, Delivery } from './delivery.ts';
import type { DeliveryHandler, HandlerContext } from './handler.ts';
import type { Inbox } from './inbox.ts';

/** How long to wait before the store is asked again after it failed, in milliseconds. */
const STORE_RETRY = 1_000;

export interface DispatcherOptions {
  readonly inbox: Inbox;
  /** The handlers by event name. */
  readonly handlers: ReadonlyMap<string, DeliveryHandler>;
  readonly log: HandlerContext['log'];
  /** Deliveries handled at the same time; default 16. */
  readonly concurrency?: number;
  /** Told how each handling ended. */
  onSettled?(delivery: Delivery, outcome: 'done' | 'failed' | 'unhandled', error?: unknown): void;
}

/**
 * Takes pending deliveries from the inbox and runs their handlers.
 * States: stopped -> running (start) -> stopping (stop: claims nothing more) -> stopped.
 * A delivery is settled after its handler ended, so one whose process dies is handled again: at least once.
 */
export class Dispatcher {
  readonly #options: Required<Pick<DispatcherOptions, 'concurrency'>> & DispatcherOptions;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #cut = new AbortController();
  #claiming: Promise<void> | undefined;
  #again = false;

  constructor(options: DispatcherOptions) {
    this.#options = { concurrency: 16, ...options };
  }

  /** Gives back what an ended process had in hand, then handles whatever waits. */
  async start(): Promise<void> {
    await this.#options.inbox.recover();
    this.wake();
  }

  /** Says that there may be something to claim. */
  wake(): void {
    this.#again = true;
    if (this.#stop.signal.aborted) return;
    this.#claiming ??= this.#claimAll().finally(() => {
      this.#claiming = undefined;
      if (this.#again && this.#hasRoom()) this.wake();
    });
  }

  /**
   * Claims nothing more and waits for the handlers at work; when `deadline` fires their signal is aborted
   * and their deliveries are given back to be claimed by the next process.
   */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#stop.abort();
    const cut = () => this.#cut.abort();
    deadline.addEventListener('abort', cut, { once: true });
    if (deadline.aborted) cut();
    await this.#claiming;
    await Promise.all(this.#running);
    deadline.removeEventListener('abort', cut);
  }

  #hasRoom(): boolean {
    return this.#running.size < this.#options.concurrency;
  }

  async #claimAll(): Promise<void> {
    const { inbox, concurrency, log } = this.#options;
    while (this.#again && this.#hasRoom() && !this.#stop.signal.aborted) {
      const room = concurrency - this.#running.size;
      this.#again = false;
      try {
        const claimed = await inbox.claim(room);
        if (claimed.length === room) this.#again = true;
        for (const delivery of claimed) this.#run(delivery);
      } catch (error) {
        log.error({ err: error }, 'deliveries cannot be claimed');
        this.#again = true;
        await delay(STORE_RETRY, undefined, { signal: this.#stop.signal }).catch(() => {});
      }
    }
  }

  #run(claimed: ClaimedDelivery): void {
    const running = this.#handle(claimed)
      .catch((error: unknown) => {
        this.#options.log.error({ err: error, delivery: claimed.id }, 'delivery cannot be settled');
      })
      .finally(() => {
        this.#running.delete(running);
        if (this.#again) this.wake();
      });
    this.#running.add(running);
  }

  async #handle(claimed: ClaimedDelivery): Promise<void> {
    const { inbox, handlers, log, onSettled } = this.#options;
    const delivery = toDelivery(claimed);
    const handler = handlers.get(delivery.event);
    if (handler === undefined) {
      await inbox.settle(delivery.id, 'unhandled');
      onSettled?.(delivery, 'unhandled');
      return;
    }
    const signal = this.#cut.signal;
    try {
      signal.throwIfAborted();
      await unlessAborted(handler(delivery, { signal, log }), signal);
    } catch (error) {
      if (signal.aborted) {
        await inbox.settle(delivery.id, 'pending');
        return;
      }
      await inbox.settle(delivery.id, 'failed');
      onSettled?.(delivery, 'failed', error);
      return;
    }
    await inbox.settle(delivery.id, 'done');
    onSettled?.(delivery, 'done');
  }
}

/** Waits for work, but no longer than the signal: a handler that does not listen to it must not hold up the stop. */
async function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function toDelivery({ id, event, body, receivedAt }: ClaimedDelivery): Delivery {
  const { data } = parseJsonBody(body) as { readonly data?: unknown };
  return { id, event, data, receivedAt: new Date(receivedAt) };
}
