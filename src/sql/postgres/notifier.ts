import { hostname } from 'node:os';
import type { Connection } from '../postgres-pool/connection.ts';

/**
 * The application name of this connection, of which each process has one, so that the server can list the
 * processes. The server cuts names at 63 bytes.
 */
const NAME = `portico: ${hostname()
  .replace(/[^\w.-]/g, '')
  .slice(0, 40)}/${process.pid}`;

/** Lists the processes on the database of the connection. */
export const PROCESSES = `
  SELECT substr(application_name, 10), CAST(extract(epoch FROM backend_start) * 1000 AS bigint)
  FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'portico: %'
  ORDER BY backend_start`;

/**
 * Minimum interval between two notifications of a topic, in milliseconds; requests in between are combined.
 */
const INTERVAL = 20;
/** A connection that does not answer for this long is closed, in milliseconds. */
const TIMEOUT = 2_000;
/** Delay before retrying to connect, in milliseconds. */
const RETRY = { min: 250, max: 1_000 };

/**
 * Sends notifications to the other processes on this database (`NOTIFY`) and receives theirs (`LISTEN`), on a
 * separate connection. Notifications are lost while it is disconnected, so listeners also poll. They are sent
 * after the commit: within the transaction they would serialise all commits.
 */
export class Notifier implements AsyncDisposable {
  readonly #connect: () => Promise<Connection>;
  readonly #listeners = new Map(TOPICS.map((topic) => [topic, new Set<() => void>()]));
  /** Topics notified within the last `INTERVAL`, and whether another notification is pending. */
  readonly #throttled = new Map<Topic, { readonly timer: NodeJS.Timeout; again: boolean }>();
  #connection: Connection | undefined;
  #prepare: ((connection: Connection) => Promise<void>) | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect;
  }

  /** Connects and listens; retries automatically after a failure. */
  async open(): Promise<void> {
    let unused: Connection | undefined;
    try {
      const connection = await this.#connect();
      unused = connection;
      connection.onNotification = (channel) => this.#emit(topicOf(channel));
      // Notifications are not durable, so their commits need no fsync.
      const listens = TOPICS.map((topic) => `LISTEN ${channelOf(topic)}`).join('; ');
      await connection.run(
        { text: `SET synchronous_commit = off; SET application_name = '${NAME}'; ${listens}` },
        undefined,
      );
      await this.#prepare?.(connection);
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

  /** Runs `prepare` on the connection, and on each later one after a reconnect. */
  async onConnect(prepare: (connection: Connection) => Promise<void>): Promise<void> {
    this.#prepare = prepare;
    if (this.#connection !== undefined) await prepare(this.#connection);
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
    else connection.run({ text: `NOTIFY ${channelOf(topic)}` }, undefined).catch(() => {});
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

/** The subject of a notification: new jobs, new users, or enqueued deliveries. */
type Topic = 'work' | 'users' | 'enqueued';

const TOPICS: readonly Topic[] = ['work', 'users', 'enqueued'];

const PREFIX = 'portico_';

/** The channel of a topic. */
export function channelOf(topic: Topic): string {
  return `${PREFIX}${topic}`;
}

/** The topic of a channel. */
function topicOf(channel: string): Topic {
  return channel.slice(PREFIX.length) as Topic;
}
