import type { Connection } from './pool/connection.ts';

/** What a notification announces: new jobs, or changes of users. */
export type Topic = 'work' | 'users';

const TOPICS: readonly Topic[] = ['work', 'users'];
const PREFIX = 'portico_';
/** Minimum interval between two notifications of a topic, in milliseconds; those in between become one. */
const INTERVAL = 20;
/** A connection without an answer for this long is closed, in milliseconds. */
const TIMEOUT = 2_000;
/** Delay before the next attempt to connect, in milliseconds. */
const RETRY = { min: 250, max: 1_000 };

/**
 * Sends notifications to the other processes on this database (`NOTIFY`) and receives theirs (`LISTEN`), on a connection
 * of its own. Notifications are lost while it is disconnected, so listeners also poll. They are sent after the commit:
 * inside the transaction they would serialise all commits.
 */
export class Notifier implements AsyncDisposable {
  readonly #connect: () => Promise<Connection>;
  readonly #listeners = new Map(TOPICS.map((topic) => [topic, new Set<() => void>()]));
  /** Topics that were notified within `INTERVAL`, and whether they were notified again since. */
  readonly #throttled = new Map<Topic, { readonly timer: NodeJS.Timeout; again: boolean }>();
  #connection: Connection | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect;
  }

  /** Connects and listens; after a failure it retries by itself. */
  async open(): Promise<void> {
    let unused: Connection | undefined;
    try {
      const connection = await this.#connect();
      unused = connection;
      connection.onNotification = (channel) => this.#emit(channel.slice(PREFIX.length) as Topic);
      // Notifications are not durable, so their commits need no fsync.
      const listens = TOPICS.map((topic) => `LISTEN ${PREFIX}${topic}`).join('; ');
      await connection.run({ text: `SET synchronous_commit = off; ${listens}` }, undefined);
      if (this.#closed) return await connection[Symbol.asyncDispose]();
      connection.onChange = () => {
        if (connection.lost) this.#reopen();
      };
      this.#connection = connection;
      // It may have been lost before `onChange` was set.
      if (connection.lost) this.#reopen();
      // Notifications may have been missed while disconnected.
      for (const topic of TOPICS) this.#emit(topic);
    } catch {
      // A failed LISTEN must not leak its connection.
      await unused?.[Symbol.asyncDispose]();
      this.#reopen();
    }
  }

  /** Notifies the other processes, at most once per `INTERVAL`. */
  notify(topic: Topic): void {
    const throttled = this.#throttled.get(topic);
    if (throttled !== undefined) {
      throttled.again = true;
      return;
    }
    this.#send(topic);
    const timer = setTimeout(() => {
      const again = this.#throttled.get(topic)?.again;
      this.#throttled.delete(topic);
      if (again === true) this.notify(topic);
    }, INTERVAL);
    this.#throttled.set(topic, { timer, again: false });
  }

  /** Calls a listener on each notification of another process, and after each reconnect. */
  listen(topic: Topic, listener: () => void): Disposable {
    this.#listeners.get(topic)?.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.get(topic)?.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const { timer } of this.#throttled.values()) clearTimeout(timer);
    clearTimeout(this.#retry);
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.[Symbol.asyncDispose]();
  }

  #send(topic: Topic): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    if (connection.silence > TIMEOUT) connection.abort(`no answer for ${TIMEOUT} ms`);
    else connection.run({ text: `NOTIFY ${PREFIX}${topic}` }, undefined).catch(() => {});
  }

  #emit(topic: Topic): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  #reopen(): void {
    this.#connection = undefined;
    if (this.#closed || this.#retry !== undefined) return;
    this.#retry = setTimeout(
      () => {
        this.#retry = undefined;
        void this.open();
      },
      RETRY.min + Math.random() * (RETRY.max - RETRY.min),
    );
  }
}
