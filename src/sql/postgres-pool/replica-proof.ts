import { type Connection, type Row, type Statement, sqlState } from './connection.ts';
import type { Server } from './server.ts';

/** Time between two looks while no replica may be read, in milliseconds. */
const LOOK = 250;
/** While one may be read, this many times as long passes between two looks. */
const RARELY = 4;

/**
 * The timeline and the position of the log that a server has flushed, or that a replica has replayed. A replica tells its
 * timeline at once to members of pg_read_all_stats, to others after its next restart point. The server is asked once
 * whether it is a replica: it may be promoted meanwhile.
 */
const POSITION: Statement = {
  name: 'log-position',
  text: `
    SELECT (pg_control_system()).system_identifier::text, is_replica,
      CASE WHEN is_replica THEN greatest(
        (pg_control_checkpoint()).timeline_id, (pg_control_recovery()).min_recovery_end_timeline,
        (SELECT max(received_tli) FROM pg_stat_wal_receiver))
      ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int END,
      (CASE WHEN is_replica THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0')::bigint
    FROM (SELECT pg_is_in_recovery() AS is_replica) AS server`,
};

interface Position {
  /** Identifies the database cluster, with all its replicas. */
  readonly system: string;
  readonly isReplica: boolean;
  readonly timeline: number;
  readonly at: number;
}

function positionOf([row = []]: readonly Row[]): Position {
  const [system, isReplica, timeline, at] = row;
  return {
    system: String(system),
    isReplica: isReplica === true,
    timeline: Number(timeline ?? 0),
    at: Number(at ?? -1),
  };
}

/** What a replica must have replayed: the position of the primary after a number of writes of this process. */
interface Target extends Position {
  readonly writes: number;
}

/** syntax_error_or_access_rule_violation and feature_not_supported: the server tells no positions. */
const UNTOLD = /^(?:42|0A)/;
/** Stands for the number of writes that a replica has if it is known to have fewer, or another timeline. */
const TOO_FEW = -1;

/**
 * Tells which connections to replicas see all writes of this process. While reads are asked for, it compares the position
 * that each replica has replayed with one of the primary that was read after the last write. Positions of two timelines
 * are not compared: after a fail-over a replica may be read once it follows the new primary.
 */
export class ReplicaProof implements Disposable {
  readonly #primary: Server;
  readonly #timer: NodeJS.Timeout;
  #replica: Server | undefined;
  /** How many writes of this process have ended. */
  #writes = 0;
  #target: Target | undefined;
  /** How many of the writes each connection has seen. */
  #seen = new WeakMap<Connection, number>();
  /** The most of `#seen`; undefined before the first look. */
  #most: number | undefined;
  /** Whether connections that were not looked at may be read, because nothing was written and no server took over. */
  #isTrusting = true;
  /** Whether the servers tell no positions, so that only time decides. */
  #isUntold = false;
  #isAsked = false;
  #isLooking = false;
  #passed = 0;

  constructor(primary: Server) {
    this.#primary = primary;
    this.#timer = setInterval(() => this.#tick(), LOOK).unref();
  }

  /** Must be called once, with the server whose connections it judges. */
  judge(replica: Server): void {
    this.#replica = replica;
  }

  /** Must be called after each write. */
  wrote(): void {
    this.#writes++;
    this.#isTrusting = false;
  }

  /** Whether some connection may be read. To ask makes it look. */
  isOpen(): boolean {
    this.#isAsked = true;
    if (this.#isUntold) return true;
    return this.#most === undefined ? this.#isTrusting : this.#most === this.#writes;
  }

  /** Whether a connection may be read, or one that is yet to be opened. */
  allows(connection: Connection | undefined): boolean {
    if (this.#isUntold) return true;
    const seen = connection && this.#seen.get(connection);
    return seen === undefined ? this.#isTrusting : seen === this.#writes;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    if (!this.#isAsked || this.#isLooking || this.#isUntold) return;
    if (this.#most === this.#writes && ++this.#passed < RARELY) return;
    this.#passed = 0;
    this.#isAsked = false;
    this.#isLooking = true;
    this.#look()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #look(): Promise<void> {
    const writes = this.#writes;
    const primary = await this.#primary.read(POSITION, []).then(positionOf);
    const before = this.#target;
    // A connection may outlive the fall of its server, or its replacement by another one.
    if (primary.isReplica || primary.timeline < (before?.timeline ?? 0)) return;
    if (before !== undefined && primary.timeline !== before.timeline) {
      this.#seen = new WeakMap();
      this.#isTrusting = false;
      this.#most = TOO_FEW;
    }
    // A replica that lags a little would never reach a target that moves.
    const isSame = before?.timeline === primary.timeline && before.writes === writes;
    const target = isSame ? before : { ...primary, writes, at: this.#isTrusting ? 0 : primary.at };
    this.#target = target;
    const seen: number[] = [];
    await this.#replica?.each(async (connection) => {
      const found = await connection
        .run(POSITION, [])
        .then(positionOf)
        .catch((error: unknown) => this.#failed(error));
      if (found === undefined) return;
      // The log of a copy by other means has other positions.
      if (found.system !== target.system) this.#isUntold = true;
      const has = found.timeline === target.timeline && found.at >= target.at;
      this.#seen.set(connection, has ? writes : TOO_FEW);
      seen.push(has ? writes : TOO_FEW);
    });
    if (seen.length > 0 || !this.#isTrusting) this.#most = Math.max(TOO_FEW, ...seen);
  }

  #failed(error: unknown): undefined {
    const state = sqlState(error) ?? sqlState((Object(error) as { readonly cause?: unknown }).cause) ?? '';
    if (UNTOLD.test(state)) this.#isUntold = true;
  }
}
