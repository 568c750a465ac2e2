import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';

/** A door of the service, for people. */
export interface ConsoleDoor {
  readonly name: string;
  /** Its full address, such as `http://127.0.0.1:8000/users`. */
  readonly url: string;
  /** Whether a browser can open that address. */
  readonly page: boolean;
}

/** A sender of webhooks that a test delivery can come from. */
interface TestSource {
  /** The name of the source; empty for /webhook itself. */
  readonly name: string;
  /** How it signs, such as `github`. */
  readonly scheme: string;
  /** An event that something handles, by the sender's own name. */
  readonly event: string;
}

/** What the receiver answered to a test delivery. */
export interface TestAnswer {
  readonly status: number;
  readonly body: string;
  /** What the receiver calls the delivery; undefined when it does not say. */
  readonly delivery: string | undefined;
  /** In milliseconds. */
  readonly took: number;
}

/** Sends test deliveries to the service itself. */
export interface TestSender {
  sources(): readonly TestSource[];
  /** Rejects with HttpProblem when the delivery cannot be built or sent. */
  send(source: string, event: string, data: unknown): Promise<TestAnswer>;
}

/** What the console shows beside the endpoints. The program that registers the door gives some of it. */
export interface ConsoleView {
  /** Whether only this machine can connect, as on a Unix socket, whose clients have no address. */
  readonly localOnly?: boolean | undefined;
  /** Host names under which the door is asked for, beside its own addresses. */
  readonly hosts?: readonly string[] | undefined;
  /** Why users and deliveries are closed here, and how to open them; undefined where they are open. */
  readonly closed?: string | undefined;
  /** The role that a user needs for actions; none when undefined. */
  readonly role?: string | undefined;
  /** The doors that are open; called for each request. */
  readonly doors?: (() => readonly ConsoleDoor[]) | undefined;
  /** How the database is called for people, such as `SQLite`; undefined without one. */
  readonly database?: string | undefined;
  readonly sender?: TestSender | undefined;
  /** The users that REST serves; undefined without a database. */
  readonly users?: DatabaseUserStore | undefined;
  /** The processes on the database, this one too; undefined where there can only be one. */
  readonly processes?: (() => MaybePromise<readonly ConsoleProcess[]>) | undefined;
}

/** A process that the database knows of. */
export interface ConsoleProcess {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}
