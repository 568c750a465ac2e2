import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { MaybePromise } from '../../../src/core/scheduler.ts';
import { CooperativeScheduler } from '../../../src/core/scheduler.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';
import { LIMITS } from '../server/limits.ts';

/** A destination of bytes: a reply, an event stream or a WebSocket. */
export interface SentReply {
  /** Calls a listener once the client has received everything or has disconnected. */
  onClose(listener: () => void): void;
  /** The number of bytes of its connection that the system has taken so far. */
  taken(): number;
  /** Closes the connection. */
  cut(): void;
}

/**
 * Whole replies of this size or more are refused if they do not fit, in bytes; the system takes smaller ones
 * at once.
 */
export const LARGE_REPLY = 16 * 1024;
const BUDGET = Symbol('portico.replyBudget');

/** A client that has read something within this time is not disconnected, in milliseconds. */
const EVICTABLE = 1_000;
/**
 * The share of the budget that further pieces may fill. Without it, clients that request long replies and do
 * not read them could fill the budget again and again, and new replies would be refused.
 */
const PIECES_SHARE = 0.75;
/** Time between two searches for stalled clients while pieces wait, in milliseconds. */
const SEARCH_INTERVAL = 250;

interface Waiting {
  readonly unread: Unread;
  readonly bytes: number;
  readonly go: () => void;
}

/**
 * Bounds the bytes of all replies that clients have not read yet. Over the limit, the oldest replies whose
 * clients have read nothing for a second are cut. If there are none, new replies are refused, and further
 * pieces of older ones wait.
 */
export class ReplyBudget {
  /** Schedules the production of pieces of all replies. */
  readonly turns = new CooperativeScheduler(Number.POSITIVE_INFINITY);
  readonly #maxBytes: number;
  /** Replies with unread bytes, oldest first. */
  readonly #held = new Set<Unread>();
  /** Pieces that wait for capacity, oldest first. */
  #waiting: Waiting[] = [];
  #search: NodeJS.Timeout | undefined;
  #isMakingRoom = false;
  #bytes = 0;

  /** A single reply may exceed `maxBytes`. */
  constructor(maxBytes: number = LIMITS.maxUnread) {
    this.#maxBytes = maxBytes;
  }

  /** The budget of a Fastify instance or its enclosing one; creates one if there is none. */
  static of(app: FastifyInstance): ReplyBudget {
    const known = (app as { [BUDGET]?: ReplyBudget })[BUDGET];
    if (known !== undefined) return known;
    const budget = new ReplyBudget();
    budget.attach(app);
    return budget;
  }

  /** Makes the replies of an instance and its scopes count towards this budget. */
  attach(app: FastifyInstance): void {
    app.decorate(BUDGET, this as ReplyBudget);
  }

  /** The number of unread bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the limit is exceeded: senders of events then disconnect slow readers. */
  get isOver(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** Starts counting a reply, until it closes. */
  open(reply: SentReply): Unread {
    return new Unread(this, reply);
  }

  /** Counts a whole reply. Throws HttpProblem, 503 with Retry-After, if it does not fit. */
  take(bytes: number, reply: SentReply): void {
    if (bytes < LARGE_REPLY) return;
    this.reserve(bytes);
    this.open(reply).add(bytes);
  }

  /** Disconnects stalled clients if `bytes` do not fit; returns whether they fit then. */
  makeRoom(bytes: number): boolean {
    this.#isMakingRoom = true;
    this.#evict(bytes);
    this.#isMakingRoom = false;
    return this.#fits(bytes);
  }

  /** Like `makeRoom`, but throws HttpProblem, 503 with Retry-After, if the bytes do not fit. */
  reserve(bytes: number): void {
    if (this.makeRoom(bytes)) return;
    throw new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } });
  }

  /** Returns once more bytes of a started reply fit, in the order of calls. */
  whenRoom(unread: Unread, bytes: number): MaybePromise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes, PIECES_SHARE)) return undefined;
    return new Promise((go) => {
      this.#waiting.push({ unread, bytes, go });
      this.#grantWaiting();
    });
  }

  /** Cancels a reply's waits for capacity. */
  leave(unread: Unread): void {
    const left = this.#waiting.filter((each) => each.unread === unread);
    if (left.length === 0) return;
    this.#waiting = this.#waiting.filter((each) => each.unread !== unread);
    for (const { go } of left) go();
    this.#grantWaiting();
  }

  /** Updates the unread bytes of a reply. */
  change(unread: Unread, before: number, after: number): void {
    this.#bytes += after - before;
    if (before === 0) this.#held.add(unread);
    if (after === 0) this.#held.delete(unread);
    if (after > before && this.isOver) this.#evict(0);
    if (this.#waiting.length > 0) this.#grantWaiting();
  }

  #fits(bytes: number, share = 1): boolean {
    return this.#held.size === 0 || this.#bytes + bytes <= share * this.#maxBytes;
  }

  #evict(bytes: number, share = 1): void {
    const now = performance.now();
    for (const unread of this.#held) {
      if (this.#fits(bytes, share)) return;
      if (unread.isStalled(now)) unread.cut();
    }
  }

  /** Resumes waiting replies that fit now. */
  #grantWaiting(): void {
    if (this.#isMakingRoom) return;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      this.#evict(first.bytes, PIECES_SHARE);
      // Cutting a client also calls this method.
      if (this.#waiting[0] !== first) continue;
      if (!this.#fits(first.bytes, PIECES_SHARE)) break;
      this.#waiting.shift();
      first.unread.grant(first.bytes);
      first.go();
    }
    if (this.#waiting.length > 0) {
      // No event tells when a client becomes stalled.
      this.#search ??= setTimeout(() => {
        this.#search = undefined;
        this.#grantWaiting();
      }, SEARCH_INTERVAL).unref();
    }
  }
}

/** The unread bytes of a reply. */
export class Unread {
  readonly #budget: ReplyBudget;
  readonly #reply: SentReply;
  #bytes = 0;
  /** Whether the bytes are reserved for a piece that is still to be produced. */
  #isReserved = false;
  #isClosed = false;
  /** The last result of `taken`, and when it changed. */
  #taken = 0;
  #since = 0;

  constructor(budget: ReplyBudget, reply: SentReply) {
    this.#budget = budget;
    this.#reply = reply;
    reply.onClose(() => this.close());
  }

  /** Whether the client has received everything or has disconnected. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether bytes are unread or reserved. */
  get isHeld(): boolean {
    return this.#bytes > 0;
  }

  /**
   * Whether the client is too far behind to get more events: its unread bytes exceed `max`, or it has any
   * while the budget is exceeded. A single event may have any size.
   */
  isBehind(max: number = LIMITS.maxUnreadEvents): boolean {
    return this.#bytes > max || (this.#bytes > 0 && this.#budget.isOver);
  }

  /** Whether unsolicited bytes may be sent; only large ones are refused if they do not fit. */
  mayAdd(bytes: number): boolean {
    return bytes < LARGE_REPLY || this.#budget.makeRoom(bytes);
  }

  /**
   * Reserves capacity for the first piece of a reply. Throws HttpProblem, 503 with Retry-After, if there is
   * none.
   */
  reserve(bytes: number): void {
    this.#budget.reserve(bytes);
    this.grant(bytes);
  }

  /** Reserves capacity for a further piece; returns once there is some or the client has disconnected. */
  whenRoom(bytes: number): MaybePromise<void> {
    if (this.#isClosed) return undefined;
    const room = this.#budget.whenRoom(this, bytes);
    if (room === undefined) this.grant(bytes);
    return room;
  }

  /** Assigns available capacity to the reply. */
  grant(bytes: number): void {
    if (this.#isClosed) return;
    this.#isReserved = true;
    this.#set(bytes);
  }

  /** Counts the bytes being sent, replacing the reservation. */
  hold(bytes: number): void {
    this.#isReserved = false;
    if (this.#isClosed) return;
    this.#look();
    this.#set(bytes);
  }

  /** Adds bytes that are sent in any case. */
  add(bytes: number): void {
    if (this.#isClosed || bytes === 0) return;
    if (this.#bytes === 0) this.#look();
    this.#set(this.#bytes + bytes);
  }

  /** Removes bytes that the system has taken. */
  remove(bytes: number): void {
    this.#set(Math.max(0, this.#bytes - bytes));
  }

  /** Whether the client has read nothing for `EVICTABLE` milliseconds. */
  isStalled(now: number): boolean {
    if (this.#isReserved) return false;
    if (this.#reply.taken() !== this.#taken) this.#look(now);
    return now - this.#since >= EVICTABLE;
  }

  /** Closes the connection. */
  cut(): void {
    this.close();
    this.#reply.cut();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#set(0);
    this.#budget.leave(this);
  }

  #look(now = performance.now()): void {
    this.#taken = this.#reply.taken();
    this.#since = now;
  }

  #set(bytes: number): void {
    const before = this.#bytes;
    if (bytes === before) return;
    this.#bytes = bytes;
    this.#budget.change(this, before, bytes);
  }
}

/** The number of bytes of a connection that the system has taken so far. */
export function takenBy(socket: Socket | null): number {
  return socket === null ? 0 : socket.bytesWritten - socket.writableLength;
}
