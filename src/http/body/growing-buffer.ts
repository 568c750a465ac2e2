const NOTHING = Buffer.alloc(0);

/**
 * Bytes that come in pieces, in one buffer that doubles when it is full. A list of the pieces would take a few hundred
 * bytes for each of them, however small it is.
 */
export class GrowingBuffer {
  #bytes: Buffer<ArrayBuffer> = NOTHING;
  #length = 0;
  readonly #most: number;

  /** `most`: the length that is not exceeded, so that nothing is allocated beyond it; default unknown. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** The memory that it takes with so many more bytes. */
  sizeWith(more: number): number {
    const length = this.#length + more;
    if (length <= this.#bytes.length) return this.#bytes.length;
    return Math.max(length, Math.min(2 * this.#bytes.length, this.#most));
  }

  append(piece: Uint8Array): void {
    const size = this.sizeWith(piece.length);
    // The old memory is free at once, not when garbage is collected.
    if (size > this.#bytes.length) {
      const memory = this.#length === 0 ? new ArrayBuffer(size) : this.#bytes.buffer.transfer(size);
      this.#bytes = Buffer.from(memory);
    }
    this.#bytes.set(piece, this.#length);
    this.#length += piece.length;
  }

  /** Appends a piece that nobody else has: the first one is not copied where it has its memory for itself. */
  adopt(piece: Buffer<ArrayBuffer>): void {
    if (this.#length > 0 || piece.length < piece.buffer.byteLength) this.append(piece);
    else {
      this.#bytes = piece;
      this.#length = piece.length;
    }
  }

  /** The bytes; the buffer is empty afterwards. */
  take(): Buffer {
    const isFull = this.#length === this.#bytes.length;
    const bytes = isFull ? this.#bytes : this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return bytes;
  }
}
