import type { AuditEvent } from './audit.ts';

/** How long events are gathered before their number is written, in milliseconds. */
const PERIOD = 10_000;
/** Kinds that are counted apart; all others count together. */
const MAX_KINDS = 50;

interface Gathered {
  readonly first: AuditEvent;
  count: number;
}

/** Events beyond the rate, by their kind: what happened at which door, not who did it. */
export class Surplus {
  readonly #kinds = new Map<string, Gathered>();
  #until: number | undefined;

  get size(): number {
    return this.#kinds.size;
  }

  add(event: AuditEvent): void {
    this.#until ??= performance.now() + PERIOD;
    const { type, isAction, data } = event;
    const own = `${type} ${isAction} ${data.door} ${data.code}`;
    const kind = this.#kinds.has(own) || this.#kinds.size < MAX_KINDS ? own : '';
    const gathered = this.#kinds.get(kind);
    if (gathered === undefined) this.#kinds.set(kind, { first: event, count: 1 });
    else gathered.count++;
  }

  /** One event for each kind once their time is over, before that none; all of them with an infinite time. */
  take(now: number): readonly AuditEvent[] {
    if (this.#until === undefined || now < this.#until) return [];
    const events = [...this.#kinds.values()].map(({ first, count }) => {
      const { at, type, isAction, data } = first;
      const { door, status, code } = data;
      return { at, type, isAction, principal: '*', data: { door, status, code, count } };
    });
    this.#kinds.clear();
    this.#until = undefined;
    return events;
  }
}
