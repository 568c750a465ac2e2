import assert from 'node:assert/strict';

const SUBSCRIPTION = JSON.stringify({ query: 'subscription { userCreated { id name } }' });
/** A user that is created less than this before a stream ends may be missing from it, in milliseconds. */
const DELAY = 3_000;

/** A user that was acknowledged, and when its creation was sent and answered, in milliseconds. */
export interface CreatedUser {
  readonly id: number;
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** One event stream of `userCreated`. */
export class Subscriber {
  readonly #since = performance.now();
  readonly #told = new Map<number, number>();
  readonly #abort: AbortController;
  #until = Number.POSITIVE_INFINITY;

  constructor(body: ReadableStream<Uint8Array>, abort: AbortController) {
    this.#abort = abort;
    this.#read(body).catch(() => this.cut());
  }

  /** Users that it was told of. */
  get size(): number {
    return this.#told.size;
  }

  /** Ends the stream. */
  cut(): void {
    this.#until = Math.min(this.#until, performance.now());
    this.#abort.abort();
  }

  /** Those of `created` that it should have been told of and was not. */
  missing(created: readonly CreatedUser[]): readonly CreatedUser[] {
    return created.filter(
      ({ id, sentAt, answeredAt }) =>
        sentAt > this.#since && answeredAt < this.#until - DELAY && !this.#told.has(id),
    );
  }

  /** Fails unless each user was told once. */
  check(): void {
    for (const [id, times] of this.#told) assert.equal(times, 1, `user ${id} was told ${times} times`);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const piece of body) {
      const events = (text + decoder.decode(piece, { stream: true })).split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const json = /^event: next\ndata: (.*)$/.exec(event)?.[1];
        if (json === undefined) continue;
        const { data } = JSON.parse(json) as {
          readonly data: { readonly userCreated: { readonly id: string } };
        };
        const id = Number(data.userCreated.id);
        this.#told.set(id, (this.#told.get(id) ?? 0) + 1);
      }
    }
    this.cut();
  }
}

/** Resolves once the stream is open. */
export async function subscribeToUsers(url: string): Promise<Subscriber> {
  const abort = new AbortController();
  const response = await fetch(url, {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: SUBSCRIPTION,
    signal: abort.signal,
  });
  assert.equal(response.status, 200);
  assert.ok(response.body);
  return new Subscriber(response.body, abort);
}
