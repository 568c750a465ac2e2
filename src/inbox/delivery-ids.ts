import { randomFillSync } from 'node:crypto';

/** Random bytes are drawn for so many ids at a time. */
const DRAWN = 1024;
const BYTES = 8;
const COUNTER_END = 0x1000;
/** A new millisecond begins its count somewhere in the first half, so that there is room behind it. */
const START_MASK = 0x7ff;

/**
 * Makes ids of deliveries: UUIDs of version 7 with a counter behind the time (RFC 9562 6.2, method 1). Each is larger
 * than the one before, so that an index of them grows at its end alone; with random ones a batch changes pages all over
 * the last millisecond.
 */
export class DeliveryIds {
  readonly #random = Buffer.alloc(DRAWN * BYTES);
  #hex = '';
  #drawn = DRAWN;
  #time = 0;
  #counter = 0;
  /** The time as an id begins with it, and the version. */
  #prefix = '';

  /** The id of a delivery that comes `now`, in milliseconds since 1970. */
  next(now: number): string {
    if (this.#drawn === DRAWN) {
      this.#hex = randomFillSync(this.#random).toString('hex');
      this.#drawn = 0;
    }
    const byte = this.#drawn++ * BYTES;
    this.#counter++;
    // A clock that is set back does not count; a millisecond that is full borrows from the next one.
    if (now > this.#time || this.#counter === COUNTER_END) this.#begin(Math.max(now, this.#time + 1), byte);
    const counter = (COUNTER_END | this.#counter).toString(16).slice(1);
    // The two bits of the variant stand before the random ones.
    const variant = ((this.#random[byte] ?? 0) & 0x3f) | 0x80;
    const at = byte * 2;
    return `${this.#prefix}${counter}-${variant.toString(16)}${this.#hex.slice(at + 2, at + 4)}-${this.#hex.slice(at + 4, at + 16)}`;
  }

  #begin(time: number, byte: number): void {
    this.#time = time;
    // The id shows these bits once more, so the count tells nothing of its own.
    this.#counter = this.#random.readUInt16LE(byte) & START_MASK;
    const hex = time.toString(16).padStart(12, '0');
    this.#prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  }
}
