/** What is kept of one reply. */
export interface TailedRequest {
  /** Its number since the start. */
  readonly number: number;
  readonly door: string;
  /** The route's template, never the URL. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  /** When the reply was complete, to the second, in milliseconds since the epoch. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
}

/** The clock is read so often, in milliseconds: to read it costs more than all the rest of a reply's record. */
const CLOCK = 1_000;

/**
 * Keeps the last replies of all doors without allocating for any: numbers lie in typed arrays, and the texts are those
 * that the routes have anyway. Disposing of it ends its clock, which does not keep the process alive.
 */
export class RequestTail implements Disposable {
  readonly #capacity: number;
  readonly #doors: string[];
  readonly #routes: string[];
  readonly #methods: string[];
  readonly #status: Uint16Array;
  readonly #endedAt: Float64Array;
  readonly #duration: Float32Array;
  #number = 0;
  #now = Date.now();
  readonly #clock = setInterval(() => {
    this.#now = Date.now();
  }, CLOCK).unref();

  constructor(capacity = 500) {
    this.#capacity = capacity;
    this.#doors = new Array<string>(capacity).fill('');
    this.#routes = new Array<string>(capacity).fill('');
    this.#methods = new Array<string>(capacity).fill('');
    this.#status = new Uint16Array(capacity);
    this.#endedAt = new Float64Array(capacity);
    this.#duration = new Float32Array(capacity);
  }

  record(door: string, route: string, method: string, status: number, duration: number): void {
    const at = this.#number++ % this.#capacity;
    this.#doors[at] = door;
    this.#routes[at] = route;
    this.#methods[at] = method;
    this.#status[at] = status;
    this.#endedAt[at] = this.#now;
    this.#duration[at] = duration;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#clock);
  }

  /** The latest first. */
  latest(): readonly TailedRequest[] {
    const kept = Math.min(this.#number, this.#capacity);
    return Array.from({ length: kept }, (_, i) => this.#at(this.#number - i));
  }

  #at(number: number): TailedRequest {
    const at = (number - 1) % this.#capacity;
    return {
      number,
      door: this.#doors[at] ?? '',
      route: this.#routes[at] ?? '',
      method: this.#methods[at] ?? '',
      status: this.#status[at] ?? 0,
      endedAt: this.#endedAt[at] ?? 0,
      duration: Math.round((this.#duration[at] ?? 0) * 1_000) / 1_000,
    };
  }
}
