import type { Connection } from './pool/connection.ts';

/** What there may be news of. */
export type Topic = 'work' | 'users';

const TOPICS: readonly Topic[] = ['work', 'users'];
const PREFIX = 'portico_';
/** Rings in so many milliseconds are one. */
const PAUSE = 20;
/** A connection that gives no answer for so long is given up, in milliseconds. */
const PATIENCE = 2_000;
/** Between two attempts to connect, in milliseconds. */
const RETRY = { min: 250, max: 1_000 };

/**
 * Tells the other processes on this database that there is something new, and this one when another process does. It
 * is only faster than looking now and then: while its connection is lost nothing is told. It has a connection of its
 * own and tells after the commit, because a notification inside it would make all commits wait for each other.
 */
export class Bell implements AsyncDisposable {
  readonly #connect: () => Promise<Connection>;
  readonly #listeners = new Map(TOPICS.map((topic) => [topic, new Set<() => void>()]));
  /** Topics that were rung a moment ago, and whether they were rung again since. */
  readonly #pauses = new Map<Topic, { readonly timer: NodeJS.Timeout; again: boolean }>();
  #connection: Connection | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect;
  }

  /** Begins to listen; it goes on trying by itself. */
  async open(): Promise<void> {
    let unused: Connection | undefined;
    try {
      const connection = await this.#connect();
      unused = connection;
      connection.onNotification = (channel) => this.#tell(channel.slice(PREFIX.length) as Topic);
      // A notification is lost with its process anyhow, so its commit waits for no disk.
      const listens = TOPICS.map((topic) => `LISTEN ${PREFIX}${topic}`).join('; ');
      await connection.run({ text: `SET synchronous_commit = off; ${listens}` }, undefined);
      if (this.#closed) return await connection[Symbol.asyncDispose]();
      connection.onChange = () => {
        if (connection.lost) this.#reopen();
      };
      this.#connection = connection;
      // It may have ended before anybody watched it.
      if (connection.lost) this.#reopen();
      // Whatever came while nobody listened.
      for (const topic of TOPICS) this.#tell(topic);
    } catch {
      // Where nobody can listen, no connection stays behind with each attempt.
      await unused?.[Symbol.asyncDispose]();
      this.#reopen();
    }
  }

  /** Says that there is something new. */
  ring(topic: Topic): void {
    const pause = this.#pauses.get(topic);
    if (pause !== undefined) {
      pause.again = true;
      return;
    }
    this.#send(topic);
    const timer = setTimeout(() => {
      const again = this.#pauses.get(topic)?.again;
      this.#pauses.delete(topic);
      if (again === true) this.ring(topic);
    }, PAUSE);
    this.#pauses.set(topic, { timer, again: false });
  }

  /** Calls a listener whenever there may be something new of another process. */
  onRing(topic: Topic, listener: () => void): Disposable {
    this.#listeners.get(topic)?.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.get(topic)?.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const { timer } of this.#pauses.values()) clearTimeout(timer);
    clearTimeout(this.#retry);
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.[Symbol.asyncDispose]();
  }

  #send(topic: Topic): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    if (connection.silence > PATIENCE) connection.abort(`no answer for ${PATIENCE} ms`);
    else connection.run({ text: `NOTIFY ${PREFIX}${topic}` }, undefined).catch(() => {});
  }

  #tell(topic: Topic): void {
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
