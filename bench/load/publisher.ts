import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

interface Accepted {
  readonly id: string;
  /** When it was sent, and when the reply had come, by `performance.now()`. */
  readonly sentAt: number;
  readonly acceptedAt: number;
}

interface PublisherOptions {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
}

/** Publishes events by `POST /events`. */
export class Publisher implements Disposable {
  readonly #url: URL;
  readonly #connections: number;
  #agent = new Agent();
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ origin, headers, connections }: PublisherOptions) {
    this.#url = new URL('/events', origin);
    this.#connections = connections;
    this.#headers = headers;
  }

  /** Publishes an event. Rejects unless it is accepted for this number of endpoints. */
  async #publish(body: string, endpoints: number): Promise<Accepted> {
    const sentAt = performance.now();
    const { status, answer } = await this.#post(body);
    const acceptedAt = performance.now();
    const { id, endpoints: reached } = JSON.parse(answer);
    if (status !== 202 || reached !== endpoints)
      throw new Error(`an event for ${endpoints} endpoints: ${status} ${answer}`);
    return { id, sentAt, acceptedAt };
  }

  #post(body: string): Promise<{ readonly status: number | undefined; readonly answer: string }> {
    const headers = { ...this.#headers, 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      request(this.#url, { method: 'POST', agent: this.#agent, headers }, (reply) => {
        text(reply).then((answer) => resolve({ status: reply.statusCode, answer }), reject);
      })
        .on('error', reject)
        .end(body);
    });
  }

  /** Begins with new connections: the service may be closing those of the last round. */
  #connect(): void {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true, maxSockets: this.#connections });
  }

  /** Publishes all of these events, a fixed number at a time. */
  async all(bodies: readonly string[], endpoints: number, atOnce: number): Promise<readonly Accepted[]> {
    this.#connect();
    const accepted: Accepted[] = [];
    const waiting = bodies.values();
    const next = async () => {
      for (const body of waiting) accepted.push(await this.#publish(body, endpoints));
    };
    await Promise.all(Array.from({ length: atOnce }, next));
    return accepted;
  }

  /** Publishes these events at a fixed rate per second, whether they are answered or not. */
  async atRate(bodies: readonly string[], endpoints: number, rate: number): Promise<readonly Accepted[]> {
    this.#connect();
    const begin = performance.now();
    const answers: Promise<Accepted>[] = [];
    for (const [i, body] of bodies.entries()) {
      const wait = begin + (i * 1_000) / rate - performance.now();
      if (wait > 0) await delay(wait);
      const answer = this.#publish(body, endpoints);
      // All are awaited together at the end.
      answer.catch(() => {});
      answers.push(answer);
    }
    return Promise.all(answers);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
