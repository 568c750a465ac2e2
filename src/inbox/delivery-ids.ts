import { randomFillSync } from 'node:crypto';

/** Random bytes are generated for this many ids at a time. */
const POOL = 1024;
const BYTES = 8;
const COUNTER_END = 0x1000;
/** The counter of a new millisecond starts at a random value in the lower half, which leaves room for increments. */
const START_MASK = 0x7ff;

/**
 * Generates delivery ids: UUIDs of version 7 with a counter after the timestamp (RFC 9562 6.2, method 1). Ids increase
 * strictly, so an index of them grows only at its end; with random bits a batch would touch many pages.
 */
export class DeliveryIds {
  readonly #random = Buffer.alloc(POOL * BYTES);
  #hex = '';
  #used = POOL;
  #time = 0;
  #counter = 0;
  /** The timestamp and the version, as they start an id. */
  #prefix = '';

  /** The id of a delivery received at `now`, in milliseconds since the epoch. */
  next(now: number): string {
    if (this.#used === POOL) {
      this.#hex = randomFillSync(this.#random).toString('hex');
      this.#used = 0;
    }
    const byte = this.#used++ * BYTES;
    this.#counter++;
    // A clock that was set back is ignored; a full millisecond continues in the next one.
    if (now > this.#time || this.#counter === COUNTER_END)
      this.#startMillisecond(Math.max(now, this.#time + 1), byte);
    const counter = (COUNTER_END | this.#counter).toString(16).slice(1);
    // The two variant bits precede the random ones.
    const variant = ((this.#random[byte] ?? 0) & 0x3f) | 0x80;
    const at = byte * 2;
    return `${this.#prefix}${counter}-${variant.toString(16)}${this.#hex.slice(at + 2, at + 4)}-${this.#hex.slice(at + 4, at + 16)}`;
  }

  #startMillisecond(time: number, byte: number): void {
    this.#time = time;
    // The id contains these bits anyway, so the counter reveals nothing more.
    this.#counter = this.#random.readUInt16LE(byte) & START_MASK;
    const hex = time.toString(16).padStart(12, '0');
    this.#prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  }
}
