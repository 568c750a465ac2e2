/** A thread with more log entries that the main thread has not read yet waits, in characters. */
const MAX_UNREAD = 1_048_576;

/** A count of characters that two threads share: what a thread has logged and the main thread has not read yet. */
export class UnreadEntries {
  readonly buffer: SharedArrayBuffer;
  readonly #count: Int32Array;

  constructor(buffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#count = new Int32Array(buffer);
  }

  /** Counts an entry that is sent next; blocks the thread while there are too many, so that they take no more memory. */
  wrote(length: number): void {
    for (let unread = Atomics.load(this.#count, 0); unread > MAX_UNREAD; ) {
      Atomics.wait(this.#count, 0, unread);
      unread = Atomics.load(this.#count, 0);
    }
    Atomics.add(this.#count, 0, length);
  }

  read(length: number): void {
    Atomics.sub(this.#count, 0, length);
    Atomics.notify(this.#count, 0);
  }
}

/** The length of an entry in characters. */
export function entryLength({
  fields,
  message,
}: {
  readonly fields: string;
  readonly message: string;
}): number {
  return fields.length + message.length;
}
