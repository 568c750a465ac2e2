import type { Socket } from 'node:net';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import { CooperativeScheduler } from '../../../src/core/scheduler.ts';
import { HttpProblem, reasonPhrase } from '../problem.ts';

/** What bytes are sent to: a reply, an event stream or a WebSocket. */
export interface SentReply {
  /** Calls a listener once the client has everything or is gone. */
  onClose(listener: () => void): void;
  /** The bytes of its connection that the system has taken so far. */
  taken(): number;
  /** Closes the connection. */
  cut(): void;
}

/** A whole reply from this size on is refused when there is no room for it, in bytes; the system takes smaller ones at once. */
export const LARGE_REPLY = 16 * 1024;
/** The bytes of events that may wait for a reader when the next one comes. */
export const MAX_BEHIND = 256 * 1024;
/** The bound where no option sets one, in bytes. */
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** A client that has read something within this time makes room for nobody, in milliseconds. */
const EVICTABLE = 1_000;
/**
 * The part of the bound that further pieces of replies may fill. Clients that ask for long replies and do not read them
 * would otherwise take all the room that there is, again and again, and nobody else would get a reply.
 */
const PIECES_SHARE = 0.75;
/** The time between two searches for clients that make room for the pieces that wait, in milliseconds. */
const SEARCH_INTERVAL = 250;

interface Waiting {
  readonly unread: Unread;
  readonly bytes: number;
  readonly go: () => void;
}

/**
 * Bounds the bytes of all replies that clients have not read yet. When there are too many, the oldest of those that
 * nobody has read of for a second are cut. Without such, a new reply is refused and the next piece of an older one
 * waits.
 */
export class ReplyBudget {
  /** The turns in which the pieces of all replies are made. */
  readonly turns = new CooperativeScheduler(Number.POSITIVE_INFINITY);
  readonly #maxBytes: number;
  /** Those with unread bytes, the oldest first. */
  readonly #held = new Set<Unread>();
  /** Pieces that wait for room, the oldest first. */
  #waiting: Waiting[] = [];
  #search: NodeJS.Timeout | undefined;
  #isMakingRoom = false;
  #bytes = 0;

  /** `maxBytes` does not hold for a single reply that is larger. */
  constructor(maxBytes = DEFAULT_MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes that are unread. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether more is unread than should be: whoever sends events cuts those that are behind. */
  get isOver(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** Opens the account of a reply; it is closed with the reply. */
  open(reply: SentReply): Unread {
    return new Unread(this, reply);
  }

  /** Counts a whole reply. Throws HttpProblem, 503 with Retry-After, when there is no room for it. */
  take(bytes: number, reply: SentReply): void {
    if (bytes < LARGE_REPLY) return;
    this.reserve(bytes);
    this.open(reply).add(bytes);
  }

  /** Cuts clients that do not read, where there is no room for bytes; returns whether there is then. */
  makeRoom(bytes: number): boolean {
    this.#isMakingRoom = true;
    this.#evict(bytes);
    this.#isMakingRoom = false;
    return this.#fits(bytes);
  }

  /** The same. Throws HttpProblem, 503 with Retry-After, where there is no room. */
  reserve(bytes: number): void {
    if (this.makeRoom(bytes)) return;
    throw new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } });
  }

  /** Returns once there is room for more bytes of a reply that has begun, in the order of the calls. */
  whenRoom(unread: Unread, bytes: number): MaybePromise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes, PIECES_SHARE)) return undefined;
    return new Promise((go) => {
      this.#waiting.push({ unread, bytes, go });
      this.#grantWaiting();
    });
  }

  /** Takes back a wait for room. */
  leave(unread: Unread): void {
    const left = this.#waiting.filter((each) => each.unread === unread);
    if (left.length === 0) return;
    this.#waiting = this.#waiting.filter((each) => each.unread !== unread);
    for (const { go } of left) go();
    this.#grantWaiting();
  }

  /** Counts a change in what is unread of a reply. */
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

  /** Lets those go on for which there is room. */
  #grantWaiting(): void {
    if (this.#isMakingRoom) return;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      this.#evict(first.bytes, PIECES_SHARE);
      // Cutting a client calls this too.
      if (this.#waiting[0] !== first) continue;
      if (!this.#fits(first.bytes, PIECES_SHARE)) break;
      this.#waiting.shift();
      first.unread.grant(first.bytes);
      first.go();
    }
    if (this.#waiting.length > 0) {
      // Clients become stalled without a sign.
      this.#search ??= setTimeout(() => {
        this.#search = undefined;
        this.#grantWaiting();
      }, SEARCH_INTERVAL).unref();
    }
  }
}

/** What a client has not read yet of a reply. */
export class Unread {
  readonly #budget: ReplyBudget;
  readonly #reply: SentReply;
  #bytes = 0;
  /** Whether the bytes are room for a piece that is still to be made. */
  #isReserved = false;
  #isClosed = false;
  /** What `taken` said last, and since when. */
  #taken = 0;
  #since = 0;

  constructor(budget: ReplyBudget, reply: SentReply) {
    this.#budget = budget;
    this.#reply = reply;
    reply.onClose(() => this.close());
  }

  /** Whether the client has everything or is gone. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether anything is unread, or room is reserved for it. */
  get isHeld(): boolean {
    return this.#bytes > 0;
  }

  /**
   * Whether the client is so far behind that it should get no more events: one may be as large as it likes, but when too
   * much is unread of all replies, whoever is behind has to go.
   */
  isBehind(max = MAX_BEHIND): boolean {
    return this.#bytes > max || (this.#bytes > 0 && this.#budget.isOver);
  }

  /** Whether bytes that nobody has asked for may be sent; only large ones are refused for want of room. */
  mayAdd(bytes: number): boolean {
    return bytes < LARGE_REPLY || this.#budget.makeRoom(bytes);
  }

  /** Reserves room for the first piece of a reply. Throws HttpProblem, 503 with Retry-After, when there is none. */
  reserve(bytes: number): void {
    this.#budget.reserve(bytes);
    this.grant(bytes);
  }

  /** Reserves room for a further piece and returns once there is some, or the client has left. */
  whenRoom(bytes: number): MaybePromise<void> {
    if (this.#isClosed) return undefined;
    const room = this.#budget.whenRoom(this, bytes);
    if (room === undefined) this.grant(bytes);
    return room;
  }

  /** Gives it room that there is. */
  grant(bytes: number): void {
    if (this.#isClosed) return;
    this.#isReserved = true;
    this.#set(bytes);
  }

  /** Counts what is sent now, in the place of what was reserved. */
  hold(bytes: number): void {
    this.#isReserved = false;
    if (this.#isClosed) return;
    this.#look();
    this.#set(bytes);
  }

  /** Counts bytes that are sent in any case. */
  add(bytes: number): void {
    if (this.#isClosed || bytes === 0) return;
    if (this.#bytes === 0) this.#look();
    this.#set(this.#bytes + bytes);
  }

  /** The system has taken bytes. */
  remove(bytes: number): void {
    this.#set(Math.max(0, this.#bytes - bytes));
  }

  /** Whether nothing was read since it was looked at, for long enough. */
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

/** The bytes of a connection that the system has taken so far. */
export function takenBy(socket: Socket | null): number {
  return socket === null ? 0 : socket.bytesWritten - socket.writableLength;
}
