/** Bytes of events that may wait for a reader when the next one comes. */
export const MAX_BUFFERED = 256 * 1024;
/** Bytes of events that may wait for all readers of a door. */
const MAX_ALL = 64 * 1024 * 1024;

/** What readers of event streams and WebSockets have not read of the events that were sent to them. */
export class UnreadEvents {
  readonly #max: number;
  #bytes = 0;

  /** `max`: bytes for all readers together. */
  constructor(max = MAX_ALL) {
    this.#max = max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The events of one more reader. */
  reader(): EventBacklog {
    return new EventBacklog(
      (bytes) => {
        this.#bytes += bytes;
      },
      () => this.#bytes > this.#max,
    );
  }
}

/** What waits for one reader. */
export class EventBacklog {
  readonly #count: (bytes: number) => void;
  readonly #isFull: () => boolean;
  #bytes = 0;
  #onEmpty: (() => void) | undefined;

  constructor(count: (bytes: number) => void, isFull: () => boolean) {
    this.#count = count;
    this.#isFull = isFull;
  }

  /**
   * Whether the reader has left so much of the events before that it gets no more: one event may be as large as it likes,
   * but when too much waits for all, whoever is behind has to go.
   */
  get isTooLong(): boolean {
    return this.#bytes > MAX_BUFFERED || (this.#bytes > 0 && this.#isFull());
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    this.#count(bytes);
  }

  /** The system has taken an event, or the reader is gone. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
    this.#count(-bytes);
    if (this.#bytes > 0) return;
    const onEmpty = this.#onEmpty;
    this.#onEmpty = undefined;
    onEmpty?.();
  }

  /** Calls a listener once nothing waits any more; only the last one. */
  whenEmpty(listener: () => void): void {
    this.#onEmpty = listener;
  }
}
