import type { FastifyPluginAsync } from 'fastify';
import type { MaybePromise } from '../../core/scheduler.ts';
import type { Relation } from '../../relations/relation.ts';
import type { RowVerdicts } from '../../relations/rules/row-verdicts.ts';
import type { Claims } from '../../relations/rules/rule-trees.ts';
import type { DatabaseUserStore } from '../../relations/user-stores.ts';

/** A door of the service, as the console shows it. */
interface ConsoleDoor {
  readonly name: string;
  /** Its full address, such as `http://127.0.0.1:8000/users`. */
  readonly url: string;
  /** Whether a browser can open that address. */
  readonly page: boolean;
}

/** A sender of webhooks that a test delivery can imitate. */
interface TestSource {
  /** The name of the source; empty for /webhook itself. */
  readonly name: string;
  /** The signature scheme, such as `github`. */
  readonly scheme: string;
  /** A handled event, by the sender's name. */
  readonly event: string;
  /** Made-up data of usual events, by the sender's names. */
  readonly samples: readonly { readonly event: string; readonly data: unknown }[];
}

/** The receiver's answer to a test delivery. */
interface TestAnswer {
  readonly status: number;
  readonly body: string;
  /** The receiver's id for the delivery; undefined if the answer has none. */
  readonly delivery: string | undefined;
  /** Duration in milliseconds. */
  readonly took: number;
}

/** What a test delivery carries: data, for which the body is built, or a whole body, as of a delivery that is sent again. */
type TestContent = { readonly data: unknown } | { readonly body: string; readonly contentType: string };

/** Sends test deliveries to the service itself. */
export interface TestSender {
  sources(): readonly TestSource[];
  /** Rejects with HttpProblem if the delivery cannot be built or sent. */
  send(source: string, event: string, content: TestContent): Promise<TestAnswer>;
}

/** What the console shows besides the endpoints. An embedding program may give only some of it. */
export interface ConsoleView {
  /** Whether only this machine can connect, as on a Unix socket, whose clients have no address. */
  readonly localOnly?: boolean | undefined;
  /** Host names of the door, in addition to its own addresses. */
  readonly hosts?: readonly string[] | undefined;
  /** Why users and deliveries are hidden, and how to show them; undefined if they are shown. */
  readonly closed?: string | undefined;
  /** The role that actions require; undefined: none. */
  readonly role?: string | undefined;
  /** The open doors; called for each request. */
  readonly doors?: (() => readonly ConsoleDoor[]) | undefined;
  /** The display name of the database, such as `SQLite`; undefined without one. */
  readonly database?: string | undefined;
  readonly sender?: TestSender | undefined;
  /** The users that REST serves; undefined without a database. */
  readonly users?: DatabaseUserStore | undefined;
  /** The relations; undefined without any. */
  readonly relations?: ConsoleRelations | undefined;
  /** The declared relations if one of them has rules. */
  readonly ruled?: readonly Relation[] | undefined;
  /** The processes that use the database, including this one; undefined if there can be only one. */
  readonly processes?: (() => MaybePromise<readonly ConsoleProcess[]>) | undefined;
}

interface ConsoleProcess {
  readonly name: string;
  /** Time in milliseconds since the epoch. */
  readonly since: number;
}

/** What the console needs to show relations and to change their rows. */
interface ConsoleRelations {
  /** With that of users if one refers to it. */
  readonly all: readonly Relation[];
  /** Why they are hidden although the other doors are open; undefined if nothing hides them. */
  readonly closed: string | undefined;
  /** Whether the changes of those that record them can be followed. */
  readonly areFollowed: boolean;
  /** What rules let the bearer of a token with claims do with a row by its key; undefined for no such row. */
  readonly verdicts:
    | ((relation: string, key: string, claims: Claims | undefined) => Promise<RowVerdicts | undefined>)
    | undefined;
  /** Serves their rows, each at the paths that REST gives it. */
  readonly rows: FastifyPluginAsync;
}
