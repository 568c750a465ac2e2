import { Connection } from './connection.ts';

const CHANNEL = 'portico_work';
/** Rings in so many milliseconds are one. */
const PAUSE = 20;
/** Between two attempts to connect, in milliseconds. */
const RETRY = { min: 250, max: 1_000 };

/**
 * Tells the other processes on this database that there is work, and this one when another process does. It is only
 * faster than looking now and then: while its connection is lost nothing is told. It has a connection of its own
 * and tells after the commit, because a notification inside it would make all commits wait for each other.
 */
export class WorkBell implements AsyncDisposable {
  readonly #url: string;
  readonly #listeners = new Set<() => void>();
  #connection: Connection | undefined;
  #pause: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #again = false;
  #closed = false;

  constructor(url: string) {
    this.#url = url;
  }

  /** Begins to listen; it goes on trying by itself. */
  async open(): Promise<void> {
    try {
      const connection = await Connection.open({
        url: this.#url,
        onNotification: (ownMessage) => {
          if (!ownMessage) this.#tell();
        },
      });
      // A notification is lost with its process anyhow, so its commit waits for no disk.
      await connection.run({ text: `SET synchronous_commit = off; LISTEN ${CHANNEL}` }, undefined);
      if (this.#closed) return await connection[Symbol.asyncDispose]();
      connection.onChange = () => {
        if (connection.lost) this.#reopen();
      };
      this.#connection = connection;
      // Whatever came while nobody listened.
      this.#tell();
    } catch {
      this.#reopen();
    }
  }

  /** Says that there is work. */
  ring(): void {
    if (this.#pause !== undefined) {
      this.#again = true;
      return;
    }
    this.#send();
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.ring();
    }, PAUSE);
  }

  /** Calls a listener whenever there may be work. */
  onRing(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#pause);
    clearTimeout(this.#retry);
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.[Symbol.asyncDispose]();
  }

  #send(): void {
    if (this.#connection === undefined || this.#connection.load > 0) return;
    this.#connection.run({ text: `NOTIFY ${CHANNEL}` }, undefined).catch(() => {});
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
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
