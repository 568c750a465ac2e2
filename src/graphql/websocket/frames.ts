/** The opcodes from which on a frame controls the connection (RFC 6455 5.2). */
const FIRST_CONTROL = 0x08;

/** Follows the frames of a WebSocket through its bytes, without keeping any of them (RFC 6455 5.2). */
export class Frames {
  /** What has come of a header: 2 bytes, then the length of up to 8 and the mask of 4. */
  readonly #header = Buffer.alloc(14);
  #read = 0;
  /** The length of the header, as far as it is known. */
  #headerLength = 2;
  /** Bytes of the payload that are still to come; undefined in a header. */
  #payload: number | undefined;
  /** Frames so far of a message that has not ended. */
  #fragments = 0;
  #ended = 0;
  #isNew = false;

  /** Whether a frame or a message has begun and not ended. */
  get isOpen(): boolean {
    return this.#read > 0 || this.#fragments > 0;
  }

  /** Whether what is open has begun in the bytes that were followed last. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Frames so far of the message that has not ended. */
  get fragments(): number {
    return this.#fragments;
  }

  /** Follows more bytes; returns how many messages and control frames end in them. */
  advance(bytes: Buffer): number {
    this.#ended = 0;
    this.#isNew = !this.isOpen;
    for (let i = 0; i < bytes.length; ) {
      if (this.#payload === undefined) {
        this.#header[this.#read++] = bytes[i++] ?? 0;
        this.#advanceHeader();
      } else {
        const taken = Math.min(this.#payload, bytes.length - i);
        this.#payload -= taken;
        i += taken;
      }
      if (this.#payload === 0) this.#endFrame();
    }
    return this.#ended;
  }

  #advanceHeader(): void {
    const second = this.#header[1] ?? 0;
    const length = second & 0x7f;
    if (this.#read === 2) {
      const lengthBytes = length === 127 ? 8 : length === 126 ? 2 : 0;
      this.#headerLength = 2 + lengthBytes + (second & 0x80 ? 4 : 0);
    }
    if (this.#read < this.#headerLength) return;
    if (length === 127) this.#payload = Number(this.#header.readBigUInt64BE(2));
    else this.#payload = length === 126 ? this.#header.readUInt16BE(2) : length;
  }

  #endFrame(): void {
    const first = this.#header[0] ?? 0;
    const isFinal = (first & 0x80) !== 0;
    this.#read = 0;
    this.#headerLength = 2;
    this.#payload = undefined;
    if ((first & 0x0f) >= FIRST_CONTROL) this.#ended++;
    else if (isFinal) {
      this.#fragments = 0;
      this.#ended++;
    } else this.#fragments++;
    if (!this.isOpen) this.#isNew = true;
  }
}
