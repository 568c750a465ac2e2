/** A reply as a client sees it. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body decoded as UTF-8. */
  readonly text: string;
  /** The body parsed as JSON; throws when it is none. */
  json(): unknown;
}

/** What is sent besides method and path. */
export interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** One of the four interfaces. */
export interface Door {
  /** Sends one request and reads the whole reply. `path` goes out as it is. */
  send(method: string, path: string, options?: SendOptions): Promise<Reply>;
  /** The base URL where it listens; undefined in process. */
  readonly url: string | undefined;
}

/** The service under test: HTTP and logs, nothing of its insides. */
export interface Subject {
  readonly graphql: Door;
  readonly rest: Door;
  readonly management: Door;
  readonly webhook: Door;
  /** Every log entry so far, the oldest first. */
  logs(): readonly Record<string, unknown>[];
  /** Stops the service and starts it again on the same data. */
  restart?(): Promise<void>;
}

/** The names of the doors. */
export type DoorName = 'graphql' | 'rest' | 'management' | 'webhook';

/** What a check asks of the service before it runs. */
export interface Needs {
  /** Settings by their environment names. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text of a configuration module. */
  readonly module?: string;
  /**
   * Its place among the checks with the same settings and module: before all others of its service, because it
   * needs the users of a start, or on a second service, because it removes users, creates many or restarts.
   */
  readonly place?: 'first' | 'apart';
  /** Log entries. */
  readonly logs?: true;
  /** Data that outlive a restart: such a check has no cell with the database in memory. */
  readonly restart?: true;
  /** A listening socket: such a check has no cell in process. */
  readonly socket?: true;
}

/** One row of the contract. */
export interface Check {
  /** Stable for ever: `REST-01`. */
  readonly id: string;
  /** The heading of docs/CONTRACT.md that it rests on, such as `rest-routes`. */
  readonly heading: string;
  /** MUST: the contract says so. SHOULD: the contract is silent, and our design decides. */
  readonly level: 'MUST' | 'SHOULD';
  readonly title: string;
  readonly needs?: Needs;
  run(subject: Subject): Promise<void>;
}
